//! File descriptors: one a socket, and more of them than a shell gives a program.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Makes the process's limit at least `wanted` descriptors, and says what it is then. It is never
/// lowered.
///
/// # Errors
///
/// The hard limit is lower, and may not be raised; the message says what to do.
pub fn raise(wanted: u64) -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    // none means without end
    let soft = limit.current.unwrap_or(u64::MAX);
    if soft >= wanted {
        return Ok(soft);
    }
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum.map(|hard| hard.max(wanted)),
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        let error = io::Error::from(error);
        let text = format!(
            "{wanted} file descriptors are needed and {hard} are allowed ({error}); raise the hard limit (`ulimit -Hn \
             {wanted}` as root, LimitNOFILE= in systemd), or ask for fewer connections"
        );
        io::Error::new(error.kind(), text)
    })?;
    Ok(wanted)
}

/// Makes the process's limit `wanted` descriptors, or as many of them as the hard limit allows. It
/// is never lowered.
pub fn raise_towards(wanted: u64) {
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    if raise(wanted).is_err() {
        // the hard limit is always allowed
        let _ = raise(hard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_limit_is_raised_as_needed_and_never_lowered() {
        let before = getrlimit(Resource::Nofile);
        let soft = before.current.unwrap_or(u64::MAX);
        assert_eq!(raise(1).expect("nothing to do"), soft);
        let hard = before.maximum.unwrap_or(u64::MAX);
        assert_eq!(raise(hard).expect("up to the hard limit"), hard);
        assert_eq!(raise(soft).expect("nothing to do"), hard);
    }

    #[test]
    fn descriptor_limit_beyond_the_kernel_maximum_is_refused() {
        let error = raise(u64::MAX - 1).expect_err("beyond fs.nr_open");
        let text = error.to_string();
        assert!(text.contains("file descriptors are needed"), "{text}");
        assert!(text.contains("ulimit -Hn"), "{text}");
    }
}
