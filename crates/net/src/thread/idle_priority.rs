//! Work that yields to all other.
#![expect(
    unsafe_code,
    reason = "neither std nor rustix sets the scheduling policy of a thread"
)]

use std::io;

/// Has the calling thread, and those that it starts, run when no other thread wants the processor
/// (Linux's `SCHED_IDLE`): any that wakes up takes it at once. With `nice`, even 19, the other one
/// waits until a slice of some milliseconds has passed.
///
/// # Errors
///
/// The error of the system, if it does not permit that.
pub fn run_when_idle() -> io::Result<()> {
    // SAFETY: zeros are a value of this struct of integers; not all of its fields are public on
    // every system.
    let priority: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: `priority` is valid for reads until the call is over, and is only read.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn thread_runs_when_no_other_wants_the_processor_and_its_own_threads_too() {
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("Linux");
            let (_, behind_name) = stat.rsplit_once(')').expect("a name");
            // proc(5): `policy` is number 41, and `state`, number 3, is the first behind the name
            let policy = behind_name.split_whitespace().nth(38).expect("a policy");
            policy.parse::<i32>().expect("a number")
        };
        let before = policy();
        let idle = thread::spawn(move || {
            run_when_idle().expect("anybody may");
            [policy(), thread::spawn(policy).join().expect("a policy")]
        });
        assert_eq!(idle.join().expect("no panic"), [libc::SCHED_IDLE; 2]);
        assert_eq!(policy(), before);
    }
}
