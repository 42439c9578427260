-- What wrk prints at the end of a run, for a program to read: one line of JSON. Times are in microseconds.
function done(summary, latency, requests)
   local errors = summary.errors
   io.write(string.format(
      '{"requests":%d,"duration_us":%d,"bytes":%d,"p50_us":%d,"p99_us":%d,"errors":%d,"statuses":%d}\n',
      summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
      errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
