//! What is stored for a target, one line a variant.

use super::calls::{CallContext, StoredCalls};
use super::lookup::{self, find};
use super::target;
use std::sync::Arc;
use weir_extend::{Pending, StoredError, StoredInfo, StoredTarget};
use weir_store::{FORWARDED, MODULES};

/// What is stored for a target.
#[derive(Debug)]
pub struct StoredVariants {
    /// Those in memory, the oldest first: at most [`VARIANTS_MAX`](weir_store::VARIANTS_MAX).
    pub variants: Vec<StoredVariantInfo>,
    /// Further ones may be on disk alone. They are found by a request that selects them, as the
    /// disk has only digests of what does.
    pub may_be_more_on_disk: bool,
}

/// One of them.
#[derive(Debug)]
pub struct StoredVariantInfo {
    /// The names of the request fields that select it; their values are stored as a digest.
    pub nominated: Vec<Box<str>>,
    /// It was stored for the modules that change responses before they are stored.
    pub is_of_modules: bool,
    /// It was stored for the host and protocol that a trusted proxy may have named.
    pub is_forwarded: bool,
    /// The request of the call selects it.
    pub is_selected: bool,
    /// A rule of the operator that is gone had it stored: it answers no request.
    pub lacks_rule: bool,
    /// What is known of it.
    pub info: StoredInfo,
}

impl StoredCalls {
    /// What is stored for a target, of which its fields select one.
    pub(crate) fn list(
        &self,
        target: StoredTarget,
    ) -> Pending<Result<StoredVariants, StoredError>> {
        self.call(async move |context: CallContext| list(&context, &target).await)
    }
}

async fn list(context: &CallContext, target: &StoredTarget) -> Result<StoredVariants, StoredError> {
    let selected = match target::selecting_variant(context, target).await {
        // modules let no request come to what is stored
        Err(StoredError::Refused(..)) => None,
        exchange => Some(exchange?),
    };
    let selected = match selected {
        Some(mut exchange) => find(&mut exchange).await?,
        None => None,
    };
    let exchange = target::exchange(context, target)?;
    let key = exchange.key;
    let (store, now) = (&context.worker.shared.store, context.worker.now());
    let variants = store.variants(key).into_iter();
    let mut variants: Vec<_> = variants
        .map(|(vary, response)| {
            let names = vary.map(|(rule, _)| rule.0.to_vec()).unwrap_or_default();
            let (own, nominated): (Vec<_>, Vec<_>) =
                names.into_iter().partition(|name| name.starts_with(':'));
            let is_of = |what: &str| own.iter().any(|name| &**name == what);
            let is_it = |(found, _): &lookup::Found| Arc::ptr_eq(found, &response);
            StoredVariantInfo {
                nominated,
                is_of_modules: is_of(MODULES),
                is_forwarded: is_of(FORWARDED),
                is_selected: selected.as_ref().is_some_and(is_it),
                lacks_rule: lookup::lacks_rule(&exchange, &response),
                info: lookup::info(&response, now),
            }
        })
        .collect();
    let varies =
        |it: &StoredVariantInfo| it.is_of_modules || it.is_forwarded || !it.nominated.is_empty();
    let may_be_more_on_disk =
        store.may_be_on_disk(key) && (variants.is_empty() || variants.iter().any(varies));
    // it was found on disk, and memory has no room for it
    if let Some((response, _)) = selected.filter(|_| !variants.iter().any(|it| it.is_selected)) {
        variants.push(StoredVariantInfo {
            nominated: Vec::new(),
            is_of_modules: false,
            is_forwarded: false,
            is_selected: true,
            lacks_rule: lookup::lacks_rule(&exchange, &response),
            info: lookup::info(&response, now),
        });
    }
    if variants.is_empty() && !may_be_more_on_disk {
        return Err(StoredError::NotStored);
    }
    Ok(StoredVariants {
        variants,
        may_be_more_on_disk,
    })
}
