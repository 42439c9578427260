//! The allocator, and how it gives memory back.

/// Weir allocates per connection from several threads; mimalloc keeps those apart and gives memory
/// back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One function of the library that [`mimalloc`] links; its own declaration comes with all others
/// and one more crate.
#[expect(unsafe_code, reason = "declares a function of C; a call of it is safe")]
mod library {
    unsafe extern "C" {
        /// Frees what other threads have freed of this one's, and gives pages back that were unused
        /// for a while; `force`: all.
        pub(super) safe fn mi_collect(force: bool);
    }
}

/// Gives unused memory back to the system, as far as this thread can.
pub(crate) fn give_back() {
    library::mi_collect(false);
}
