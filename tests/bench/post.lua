-- wrk: one POST of about 1 KiB to a sink, each under an id of its own.
local counter = 0
local thread_number = 0

function setup(thread)
   thread:set("number", thread_number)
   thread_number = thread_number + 1
end

function init(args)
   local rows = {}
   for i = 1, 8 do
      rows[i] = string.format('{"device":"sensor-%04d","ts":"2026-09-21T12:00:%02d.123456Z","celsius":%d.5,"volts":3.31,"seq":%d,"ok":true}', i, i, i, i)
   end
   body = "[" .. table.concat(rows, ",") .. "]"
   run = args[1]
end

function request()
   counter = counter + 1
   return wrk.format("POST", nil, {
      ["Authorization"] = wrk.headers["Authorization"],
      ["Content-Type"] = "application/json",
      ["Idempotency-Key"] = run .. "-" .. number .. "-" .. counter,
   }, body)
end

function done(summary, latency, requests)
   io.write(string.format("RESULT %d %d %d %d %d\n", summary.requests, summary.duration,
      latency:percentile(50), latency:percentile(99), summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
