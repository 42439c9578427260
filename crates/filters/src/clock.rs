//! The engine of all filters, and the clock that its deadlines are counted in.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use weir_wasm::{Engine, LoadError};

/// The period of the clock.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// The engine, with a thread that ticks only while instances exist.
struct Clock {
    engine: Engine,
    instances: Mutex<usize>,
    is_needed: Condvar,
}

static CLOCK: OnceLock<Result<Arc<Clock>, LoadError>> = OnceLock::new();

fn clock() -> Result<&'static Arc<Clock>, LoadError> {
    let clock = CLOCK.get_or_init(|| {
        let clock = Arc::new(Clock {
            engine: Engine::new()?,
            instances: Mutex::new(0),
            is_needed: Condvar::new(),
        });
        let ticking = Arc::clone(&clock);
        let thread = std::thread::Builder::new().name("wasm-clock".into());
        let thread = thread.spawn(move || ticking.run());
        thread.map_err(|error| LoadError::Compile(format!("there is no thread: {error}")))?;
        Ok(clock)
    });
    clock.as_ref().map_err(Clone::clone)
}

impl Clock {
    fn run(&self) {
        loop {
            let instances = self.instances.lock();
            let instances = instances.unwrap_or_else(PoisonError::into_inner);
            let waited = self.is_needed.wait_while(instances, |count| *count == 0);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            std::thread::sleep(TICK);
            self.engine.tick();
        }
    }

    fn change(&self, change: impl FnOnce(&mut usize)) {
        let instances = self.instances.lock();
        change(&mut instances.unwrap_or_else(PoisonError::into_inner));
        self.is_needed.notify_one();
    }
}

/// The engine that all filters are compiled for.
///
/// # Errors
///
/// The machine is not supported.
pub(crate) fn engine() -> Result<Engine, LoadError> {
    Ok(clock()?.engine.clone())
}

/// Something that has a deadline: while it exists, the clock ticks.
#[derive(Debug)]
pub(crate) struct Ticking(());

impl Ticking {
    /// From now on.
    pub(crate) fn new() -> Self {
        if let Ok(clock) = clock() {
            clock.change(|count| *count += 1);
        }
        Self(())
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        if let Ok(clock) = clock() {
            clock.change(|count| *count -= 1);
        }
    }
}
