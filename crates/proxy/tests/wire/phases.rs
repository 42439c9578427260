//! Requests are counted at the phases that they reach.

use crate::support::Setup;
use weir_measure::{Metric, RequestPhase};

const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn requests_are_counted_at_the_phases_they_reach_and_at_no_other() {
    Setup::each(|setup| {
        setup.fetch("/", FRESH);
        setup.proxy.wait_for(Metric::Stored, 1);
        let refused = setup
            .proxy
            .client()
            .ask(setup.head("TRACE", "/", "1.1", ""));
        assert_eq!(refused.status(), 405);
        assert_eq!(setup.proxy.client().ask(setup.get("/")).text(), "ok");
        // more are refused while this waits
        for (phase, expected) in [
            (RequestPhase::Authorise, 2),
            (RequestPhase::Choose, 2),
            (RequestPhase::Forward, 1),
            (RequestPhase::RequestContent, 0),
            (RequestPhase::Store, 1),
        ] {
            setup.proxy.wait_for(Metric::PhaseReached(phase), expected);
        }
        for phase in [
            RequestPhase::RequestHead,
            RequestPhase::ResponseHead,
            RequestPhase::ResponseContent,
            RequestPhase::Done,
        ] {
            setup
                .proxy
                .wait_for_at_least(Metric::PhaseReached(phase), 3);
        }
    });
}
