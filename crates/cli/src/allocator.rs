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

/// Has the process do without transparent huge pages, before anything is allocated: the allocator
/// requests them, and a used part of one keeps all of it. A weir that serves took 6 MiB more at
/// its start, and with 200 KB responses resident memory was 1.44 times `memory`. A kernel that
/// cannot do without them only costs more.
extern "C" fn do_without_huge_pages() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// The loader calls what is in this section before `main`, in the order of the numbers: before the
/// allocator's own, which has none.
#[expect(
    unsafe_code,
    reason = "the function needs nothing that would not be there yet: it is one system call"
)]
#[used]
#[unsafe(link_section = ".init_array.00101")]
static BEFORE_MAIN: extern "C" fn() = do_without_huge_pages;

/// Permits huge pages after all, for commands that compute and end: `weir sim hits` takes a tenth
/// more time without them.
pub(crate) fn use_huge_pages() {
    let _ = rustix::thread::disable_transparent_huge_pages(false);
}
