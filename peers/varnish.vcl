# Varnish as a caching gateway: the built-in rules and nothing else.
vcl 4.1;

backend origin {
    .host = "@ORIGIN_HOST@";
    .port = "@ORIGIN_PORT@";
}
