//! How the process that has the store ends.

use super::SteppedStore;
use weir_disk::files::simulated::Plan;

impl SteppedStore {
    /// As `SIGTERM` does.
    pub(crate) fn close(&mut self) {
        self.open_records.clear();
        for directory in std::mem::take(&mut self.stepped) {
            directory.close(true);
        }
        self.end(false);
    }

    /// As `SIGKILL` or a power failure does.
    pub(crate) fn end(&mut self, is_power_failure: bool) {
        self.open_records.clear();
        self.held.clear();
        self.committed.clear();
        self.late = None;
        self.stepped.clear();
        if is_power_failure {
            self.is_unlucky = true;
            self.files.plan(Plan::default());
            self.files.crash();
        } else {
            self.files.kill();
        }
        self.disk = None;
    }
}
