//! The tests of `modules` again, with modules on threads of their own. Those of `deciding` are left
//! out, as such modules do not decide on a head by its content, and those of `host`, which read the
//! clock.

#[path = "../support/mod.rs"]
mod support;

#[path = "answers.rs"]
mod answers;
#[path = "changes.rs"]
mod changes;
#[path = "content/responses.rs"]
mod content;
#[path = "content/answers.rs"]
mod content_answers;
#[path = "failures.rs"]
mod failures;
#[path = "hits.rs"]
mod hits;
#[path = "host/own_requests.rs"]
mod own_requests;
#[path = "reload.rs"]
mod reload;
#[path = "content/requests.rs"]
mod request_content;
#[path = "scope.rs"]
mod scope;
#[path = "content/shared.rs"]
mod shared;
#[path = "stored/storing.rs"]
mod storing;
