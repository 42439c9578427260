# Varnish as a caching gateway for `weir bench`; a forward proxy it cannot be. The built-in rules follow upon these: what
# has a Cookie is passed, what sets one is not stored.
vcl 4.1;

backend origin {
    .host = "@ORIGIN_HOST@";
    .port = "@ORIGIN_PORT@";
    .first_byte_timeout = 120s;
    .between_bytes_timeout = 120s;
}

sub vcl_recv {
    # a client that reloads is asking past the cache, as RFC 9111 §5.2.1.4 has it
    if (req.http.Cache-Control ~ "no-cache" || req.http.Pragma ~ "no-cache") {
        set req.hash_always_miss = true;
    }
    @VCL_RULE@
}

sub vcl_deliver {
    if (obj.hits > 0) {
        set resp.http.X-Cache = "HIT";
    } else {
        set resp.http.X-Cache = "MISS";
    }
}
