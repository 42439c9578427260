//! What the modules have of a request that is made without a client, in the background.

use super::RequestModules;
use weir_policy::extension::Cascade;

impl RequestModules {
    /// Of the same request, begun again for `path` of `host`: those may be called that were enabled
    /// when it began, whatever an operator has enabled since; `None` if none of them is for such
    /// requests.
    pub(crate) fn again(&self, host: &[u8], path: &str) -> Option<Box<Self>> {
        let called = self.enabled.intersection(self.loaded.covering(host, path));
        (!called.is_empty()).then(|| Self::begin(None, &self.loaded, (self.enabled, called)))
    }

    /// Only those are called that change what is stored, until
    /// [`retarget`](RequestModules::retarget).
    pub(crate) fn call_changing_stored(&mut self) {
        let changing = self.loaded.changing_stored();
        self.cascade = Cascade::new(self.cascade.modules().intersection(changing));
    }
}
