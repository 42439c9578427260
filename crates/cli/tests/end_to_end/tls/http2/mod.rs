//! HTTP/2 toward clients: curl, nghttp and Node between Weir and nginx, and clients that send their
//! own frames; and toward next hops.

mod attacks;
mod conformance;
mod frames;
mod isolation;
mod limits;
mod malformed;
mod next_hops;
mod nghttp;
mod priorities;
mod stored;
mod transfers;
mod trusted_proxies;
mod uploads;
mod websockets;

use crate::support::{Config, Curl, Nginx, Weir};
use frames::Frames;

const LOCATIONS: &str = "
    location /cached { add_header Cache-Control max-age=3600; return 200 $request_id; }
    location /target { add_header Cache-Control max-age=3600; return 200 \"$request_uri|$request_id\"; }
    location /priority { add_header Cache-Control max-age=3600; return 200 \"$http_priority|$request_id\"; }
    location /varies {
        add_header Cache-Control max-age=3600;
        add_header Vary Priority;
        return 200 \"$http_priority|$request_id\";
    }
    location /priority-told { add_header Cache-Control no-store; return 200 \"$http_priority|\"; }
    location /via { add_header Cache-Control no-store; return 200 $http_via; }
    location /stored/ { add_header Cache-Control max-age=3600; }
    location /slow/ { add_header Cache-Control no-store; }
    location /private { add_header Cache-Control no-store; return 200 $http_x_user; }
    location /put/ { dav_methods PUT; }
";

/// A gateway that speaks HTTP/2 in clear, and nginx behind it.
struct Clear {
    nginx: Nginx,
    weir: Weir,
}

impl Clear {
    fn start() -> Self {
        Self::with(|config| config)
    }

    fn with(change: impl FnOnce(Config) -> Config) -> Self {
        let nginx = Nginx::start(LOCATIONS);
        let config = Config::gateway(&[&nginx.origin()]).of_listener("http2 = true");
        let weir = Weir::serve(&change(config));
        Self { nginx, weir }
    }

    /// The same, where nginx speaks HTTP/2, too.
    fn on_both_sides() -> Self {
        let nginx = Nginx::start_http2(LOCATIONS);
        let config = Config::gateway(&[&nginx.origin()]).route_http2(true);
        let config = config.of_listener("http2 = true").set("workers", "1");
        let weir = Weir::serve(&config);
        Self { nginx, weir }
    }

    /// A client that sends its own frames, after the preface and its settings.
    fn frames(&self) -> Frames {
        Frames::connect(self.weir.address())
    }

    /// curl that begins with HTTP/2.
    fn curl() -> Curl {
        Curl::direct().args(["--http2-prior-knowledge"])
    }

    /// Waits until so many connections have ended so.
    #[track_caller]
    fn expect_ends(&self, end: &str, expected: u64) {
        let metric = format!("weir_http2_connections_total{{end=\"{end}\"}}");
        let metrics = self.weir.until(&metric, |it| it.count(&metric) >= expected);
        assert_eq!(metrics.count(&metric), expected, "{end}");
    }

    /// Waits until so many streams were reset so.
    #[track_caller]
    fn expect_resets(&self, cause: &str, expected: u64) {
        let metric = format!("weir_http2_resets_total{{cause=\"{cause}\"}}");
        let metrics = self.weir.until(&metric, |it| it.count(&metric) >= expected);
        assert_eq!(metrics.count(&metric), expected, "{cause}");
    }

    /// Others are served as before.
    #[track_caller]
    fn expect_others_are_served(&self) {
        let url = self.weir.url("/cached");
        Self::curl().fetch(&url).reply().expect(200);
        assert_eq!(self.weir.metrics().count("weir_panics_total"), 0);
    }
}
