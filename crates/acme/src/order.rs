//! One order: from the account to the certificate with its key.

use crate::client::{AuthorityClient, Unreachable};
use crate::identifier;
use crate::pending::{PendingChallenges, PendingToken};
use crate::settings::{AcmeSettings, ChallengeKind};
use crate::storage::Storage;
use instant_acme::{
    Account, AccountCredentials, AuthorizationHandle, AuthorizationStatus, ChallengeType, Error,
    Identifier, KeyAuthorization, NewAccount, NewOrder, Order, OrderStatus, Problem, RetryPolicy,
};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use serde_json::{Value, json};
use std::time::Duration;
use weir_measure::AcmeOrderEnd;
use weir_net::tls::server::{Ages, Certificate};
use weir_policy::connections::renewal::SuggestedWindow;
use weir_semantics::Timestamp;

/// How long the authority may take to validate the names of an order, and as long again to issue.
const POLL_LIMIT: Duration = Duration::from_secs(90);

/// Characters of what an authority says that are written into the log.
const SAID_MAX: usize = 500;

/// Why there is no certificate.
#[derive(Debug)]
pub(crate) struct OrderFailure {
    pub(crate) end: AcmeOrderEnd,
    pub(crate) reason: String,
    /// The authority does not know the account.
    is_account_unknown: bool,
    /// It does not take the certificate for one that can be replaced.
    is_not_replaced: bool,
}

impl OrderFailure {
    pub(crate) fn new(end: AcmeOrderEnd, reason: impl Into<String>) -> Self {
        Self {
            end,
            reason: reason.into(),
            is_account_unknown: false,
            is_not_replaced: false,
        }
    }

    fn of_problem(problem: &Problem) -> Self {
        let kind = problem.r#type.as_deref().unwrap_or_default();
        let kind = kind
            .strip_prefix("urn:ietf:params:acme:error:")
            .unwrap_or(kind);
        let end = match kind {
            "rateLimited" => AcmeOrderEnd::Limited,
            "connection" | "dns" | "incorrectResponse" | "tls" | "unauthorized" => {
                AcmeOrderEnd::Validation
            }
            _ => AcmeOrderEnd::Refused,
        };
        Self {
            is_account_unknown: kind == "accountDoesNotExist",
            is_not_replaced: kind == "alreadyReplaced",
            ..Self::new(end, printable(&problem.to_string()))
        }
    }
}

impl From<Error> for OrderFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(problem) => Self::of_problem(&problem),
            Error::Timeout(_) => Self::new(
                AcmeOrderEnd::Timeout,
                "the authority was not ready with the order in time",
            ),
            Error::Other(error) if error.is::<Unreachable>() => {
                Self::new(AcmeOrderEnd::Unreachable, printable(&error.to_string()))
            }
            // RFC 9773: it does not call the certificate by that name any more
            Error::Unsupported(_) => Self {
                is_not_replaced: true,
                ..Self::new(AcmeOrderEnd::Refused, error.to_string())
            },
            error => Self::new(AcmeOrderEnd::Refused, printable(&error.to_string())),
        }
    }
}

/// A text of the authority as it can stand in a line of the log: what cannot be printed is escaped.
fn printable(text: &str) -> String {
    let escaped = text.trim().chars().flat_map(|letter| {
        let quote = matches!(letter, '"' | '\'').then_some(letter);
        let other = quote.is_none().then(|| letter.escape_debug());
        quote.into_iter().chain(other.into_iter().flatten())
    });
    escaped.take(SAID_MAX).collect()
}

/// An authority, and what it is spoken to with.
pub(crate) struct Authority<'a> {
    pub(crate) settings: &'a AcmeSettings,
    pub(crate) client: &'a AuthorityClient,
    pub(crate) storage: &'a Storage,
    pub(crate) pending: &'a PendingChallenges,
    /// Writes a line for the operator.
    pub(crate) say: &'a (dyn Fn(&str) + Send + Sync),
}

impl Authority<'_> {
    /// Has a certificate for `names` be issued, and keeps it in the storage; `old` is the one that
    /// it replaces.
    pub(crate) async fn order(
        &self,
        names: &[Box<str>],
        old: Option<&Certificate>,
        now_s: u64,
    ) -> Result<Certificate, OrderFailure> {
        match self.try_order(names, old, now_s).await {
            // it has lost it, or its certificate is for another one at the same URL
            Err(failure) if failure.is_account_unknown => {
                let aside = self.storage.set_account_aside();
                aside.map_err(|error| not_kept(&error))?;
                self.try_order(names, old, now_s).await
            }
            done => done,
        }
    }

    async fn try_order(
        &self,
        names: &[Box<str>],
        old: Option<&Certificate>,
        now_s: u64,
    ) -> Result<Certificate, OrderFailure> {
        // a certificate that cannot be kept counts for the limits of the authority all the same
        self.storage.open().map_err(|error| not_kept(&error))?;
        let account = self.account().await?;
        let mut order = match self.begin(&account, names, old).await {
            Err(failure) if failure.is_not_replaced => self.begin(&account, names, None).await?,
            order => order?,
        };
        // what is pending is taken away when the authority has looked, or this is given up
        let proofs = self.prove(&mut order).await?;
        let polled = order.poll_ready(&POLL).await;
        drop(proofs);
        match polled {
            Ok(OrderStatus::Ready) => {}
            Ok(_) => return Err(why_invalid(&mut order).await),
            Err(Error::Api(problem)) => {
                let failure = OrderFailure::of_problem(&problem);
                return Err(OrderFailure {
                    end: AcmeOrderEnd::Validation,
                    ..failure
                });
            }
            Err(error) => return Err(error.into()),
        }
        let (request, key) = signing_request(names)?;
        order.finalize_csr(&request).await?;
        let chain = order.poll_certificate(&POLL).await?;
        let issued = self.checked(names, (&chain, &key), now_s)?;
        let kept = self.storage.put_certificate(&names[0], &chain, &key);
        kept.map_err(|error| not_kept(&error))?;
        Ok(issued)
    }

    /// The account of an earlier order, or a new one.
    async fn account(&self) -> Result<Account, OrderFailure> {
        let builder = || Account::builder_with_http(self.client.boxed());
        let contact = &self.settings.contact;
        let urls: Vec<&str> = contact.iter().map(String::as_str).collect();
        if let Some((mut kept, credentials)) = self.kept_account()? {
            let account = builder().from_credentials(credentials).await?;
            if kept["contact"] != json!(contact) {
                account.update_contacts(&urls).await?;
                kept["contact"] = json!(contact);
                self.keep_account(&kept)?;
            }
            return Ok(account);
        }
        let new = NewAccount {
            contact: &urls,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let directory = self.settings.directory.clone();
        let (account, credentials) = builder().create(&new, directory, None).await?;
        let credentials = serde_json::to_value(&credentials).map_err(Error::from)?;
        self.keep_account(&json!({ "contact": contact, "credentials": credentials }))?;
        Ok(account)
    }

    /// The account in the storage, and what it is used with. A file that says neither is set aside:
    /// it may have the key of an account that is still good.
    fn kept_account(&self) -> Result<Option<(Value, AccountCredentials)>, OrderFailure> {
        let text = self.storage.account().map_err(|error| not_kept(&error))?;
        let Some(text) = text else {
            return Ok(None);
        };
        match parsed_account(&text) {
            Ok(kept) => Ok(Some(kept)),
            Err(error) => {
                let aside = self.storage.set_account_aside();
                let aside = aside.map_err(|error| not_kept(&error))?;
                (self.say)(&format!(
                    "ACME: the account in `{}` cannot be read: {error}; a new one is made, and the \
                     file is now `{}`",
                    self.storage.account_path().display(),
                    aside.display()
                ));
                Ok(None)
            }
        }
    }

    fn keep_account(&self, account: &Value) -> Result<(), OrderFailure> {
        let kept = self.storage.put_account(account.to_string().as_bytes());
        kept.map_err(|error| not_kept(&error))
    }

    async fn begin(
        &self,
        account: &Account,
        names: &[Box<str>],
        old: Option<&Certificate>,
    ) -> Result<Order, OrderFailure> {
        let identifiers = names.iter().map(|name| Identifier::Dns(name.to_string()));
        let identifiers: Vec<Identifier> = identifiers.collect();
        let new = NewOrder::new(&identifiers);
        let new = match old.and_then(identifier::of) {
            Some(old) => new.replaces(old),
            None => new,
        };
        Ok(account.new_order(&new).await?)
    }

    /// Has the authority validate each name that it has not validated lately.
    async fn prove(&self, order: &mut Order) -> Result<Vec<Proof<'_>>, OrderFailure> {
        let mut proofs = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            match authorization.status {
                AuthorizationStatus::Valid => {}
                AuthorizationStatus::Pending => {
                    let proof = self.prove_name(&mut authorization).await?;
                    proofs.push(proof);
                }
                status => {
                    let what = format!("an authorization of the order is {status:?}");
                    return Err(OrderFailure::new(AcmeOrderEnd::Refused, what));
                }
            }
        }
        Ok(proofs)
    }

    async fn prove_name<'s, 'a>(
        &'s self,
        authorization: &'a mut AuthorizationHandle<'a>,
    ) -> Result<Proof<'s>, OrderFailure> {
        let (kind, word) = match self.settings.challenge {
            ChallengeKind::Http01 => (ChallengeType::Http01, "http-01"),
            ChallengeKind::TlsAlpn01 => (ChallengeType::TlsAlpn01, "tls-alpn-01"),
        };
        let Some(mut challenge) = authorization.challenge(kind) else {
            let what = format!("the authority does not offer to validate by {word}");
            return Err(OrderFailure::new(AcmeOrderEnd::Refused, what));
        };
        let Identifier::Dns(name) = challenge.identifier().identifier else {
            let what = "the authority asks for a proof of what is no name";
            return Err(OrderFailure::new(AcmeOrderEnd::Refused, what));
        };
        let name = name.to_ascii_lowercase();
        let key_authorization = challenge.key_authorization();
        let proof = match self.settings.challenge {
            ChallengeKind::Http01 => {
                let token = &challenge.token;
                let answer = key_authorization.as_str();
                Proof::Token(self.pending.put_token(&name, token, answer))
            }
            ChallengeKind::TlsAlpn01 => {
                Proof::Certificate(self.validation(&name, &key_authorization)?)
            }
        };
        challenge.set_ready().await?;
        Ok(proof)
    }

    /// Shows the authority a certificate for `name` with the digest that it expects (RFC 8737 §3).
    fn validation(
        &self,
        name: &str,
        key_authorization: &KeyAuthorization,
    ) -> Result<ShownCertificate<'_>, OrderFailure> {
        let failed = |error: &dyn std::fmt::Display| {
            let what = format!("no certificate for the validation can be made: {error}");
            OrderFailure::new(AcmeOrderEnd::Unusable, what)
        };
        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        let params = CertificateParams::new([name.to_owned()]);
        let mut params = params.map_err(|error| failed(&error))?;
        let digest = key_authorization.digest();
        let extension = CustomExtension::new_acme_identifier(digest.as_ref());
        params.custom_extensions = vec![extension];
        let certificate = params.self_signed(&key).map_err(|error| failed(&error))?;
        let der = certificate.der().clone();
        let shown = self.pending.validations().put(name, der, key.into());
        shown.map_err(|error| failed(&error))?;
        Ok(ShownCertificate {
            pending: self.pending,
            name: name.into(),
        })
    }

    /// What was issued, if it can be used.
    fn checked(
        &self,
        names: &[Box<str>],
        (chain, key): (&str, &str),
        now_s: u64,
    ) -> Result<Certificate, OrderFailure> {
        let unusable = |what: String| OrderFailure::new(AcmeOrderEnd::Unusable, what);
        let issued = Certificate::from_pem(chain.as_bytes(), key.as_bytes(), now_s, Ages::Any);
        let issued =
            issued.map_err(|error| unusable(format!("what was issued cannot be used: {error}")))?;
        match names.iter().find(|name| !issued.covers(name)) {
            Some(name) => Err(unusable(format!("what was issued is not for `{name}`"))),
            None => Ok(issued),
        }
    }

    /// When the authority suggests that a certificate be renewed, and after how many milliseconds
    /// it is to be asked again; `None` if it makes no suggestions.
    pub(crate) async fn suggestion(
        &self,
        certificate: &Certificate,
    ) -> Result<Option<(SuggestedWindow, u64)>, OrderFailure> {
        let Some(identifier) = identifier::of(certificate) else {
            return Ok(None);
        };
        let account = self.account().await?;
        match account.renewal_info(&identifier).await {
            Ok((info, after)) => {
                let window = info.suggested_window;
                let window = SuggestedWindow {
                    start: Timestamp(window.start.unix_timestamp()),
                    end: Timestamp(window.end.unix_timestamp()),
                };
                let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                Ok(Some((window, after)))
            }
            Err(Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// What the authority is shown, until this is dropped.
#[expect(dead_code, reason = "each is held for what its end does")]
enum Proof<'a> {
    Token(PendingToken<'a>),
    Certificate(ShownCertificate<'a>),
}

struct ShownCertificate<'a> {
    pending: &'a PendingChallenges,
    name: Box<str>,
}

impl Drop for ShownCertificate<'_> {
    fn drop(&mut self) {
        self.pending.validations().remove(&self.name);
    }
}

/// The text of the storage, and what is in it; that has a key, and is not said in an error.
fn parsed_account(text: &[u8]) -> Result<(Value, AccountCredentials), String> {
    let at =
        |error: &serde_json::Error| format!("line {}, column {}", error.line(), error.column());
    let kept: Value =
        serde_json::from_slice(text).map_err(|error| format!("it is no JSON ({})", at(&error)))?;
    let credentials = serde_json::from_value(kept["credentials"].clone());
    let credentials = credentials.map_err(|_| "it has no `credentials` of an account")?;
    Ok((kept, credentials))
}

const POLL: RetryPolicy = RetryPolicy::new().timeout(POLL_LIMIT);

fn not_kept(error: &std::io::Error) -> OrderFailure {
    let what = format!("the folder of certificates cannot be used: {error}");
    OrderFailure::new(AcmeOrderEnd::Storage, what)
}

/// A request for a certificate in DER, and its new key in PEM.
fn signing_request(names: &[Box<str>]) -> Result<(Vec<u8>, String), OrderFailure> {
    let failed = |error: rcgen::Error| {
        let what = format!("no request for a certificate can be made: {error}");
        OrderFailure::new(AcmeOrderEnd::Unusable, what)
    };
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    let key = KeyPair::generate().map_err(failed)?;
    let request = params.serialize_request(&key).map_err(failed)?;
    Ok((request.der().to_vec(), key.serialize_pem()))
}

/// Why the authority has refused an order: what it says of the names.
async fn why_invalid(order: &mut Order) -> OrderFailure {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else {
            continue;
        };
        let mut problems = state.challenges.iter().filter_map(|it| it.error.as_ref());
        if let Some(problem) = problems.next() {
            return OrderFailure {
                end: AcmeOrderEnd::Validation,
                ..OrderFailure::of_problem(problem)
            };
        }
    }
    let what = "the authority has refused the order and does not say why";
    OrderFailure::new(AcmeOrderEnd::Validation, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_authority_says_is_one_line_of_printable_letters_and_bounded() {
        let said = "Get \"http://a.test\": 404\nnot \u{202e}found\n";
        let expected = "Get \"http://a.test\": 404\\nnot \\u{202e}found";
        assert_eq!(printable(said), expected);
        assert_eq!(printable(&"\n.".repeat(SAID_MAX)).len(), SAID_MAX);
    }
}
