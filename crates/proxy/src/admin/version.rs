//! By what a program knows that an admin interface answers, and whether it has what is asked for.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

/// The field that each answer has, so that a program tells it from that of another program.
pub const VERSION_FIELD: &str = "weir-admin";

/// The value of [`VERSION_FIELD`]. Endpoints may be added without a new one; one that changes its
/// meaning or goes away makes a new version.
pub const INTERFACE_VERSION: u32 = 1;

/// The first line of the list of endpoints, also of a Weir that sends no [`VERSION_FIELD`].
pub const LIST_TITLE: &str = "weir admin";

/// The first line of the answer for a path that is no endpoint.
pub const NO_ENDPOINT: &str = "no such endpoint; there are:";

/// The first line of the answer for an endpoint that has other methods.
pub const NO_METHOD: &str = "not by this method; there are:";

/// Adds [`VERSION_FIELD`].
pub(super) async fn say(mut response: Response) -> Response {
    response.headers_mut().insert(
        HeaderName::from_static(VERSION_FIELD),
        HeaderValue::from(INTERFACE_VERSION),
    );
    response
}
