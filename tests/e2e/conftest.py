from fixtures import own_server, server

__all__ = ["own_server", "server"]
