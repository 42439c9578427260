//! The machine we are on.

use std::fs;
use weir_measure::record::Host;

/// Looks at it now. What cannot be read is empty or zero.
#[must_use]
pub fn look() -> Host {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    Host {
        cpu: cpu(&read("/proc/cpuinfo")),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        load_average: load_average(&read("/proc/loadavg")),
    }
}

/// Some architectures have no `model name`.
fn cpu(text: &str) -> String {
    let of = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(name, _)| name.trim() == key)?;
        Some(value.trim().to_owned())
    };
    of("model name")
        .or_else(|| of("Hardware"))
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn memory_bytes(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn load_average(text: &str) -> f64 {
    let first = text.split_whitespace().next();
    first.and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_load_and_cpu_are_parsed_from_proc_files() {
        assert_eq!(memory_bytes("MemTotal:       2 kB\nMemFree: 1 kB\n"), 2048);
        assert_eq!(memory_bytes(""), 0);
        assert!((load_average("0.52 0.58 0.59 1/467 1234") - 0.52).abs() < 1e-9);
        assert_eq!(
            cpu("processor : 0\nmodel name\t: A CPU @ 2 GHz\n"),
            "A CPU @ 2 GHz"
        );
        assert_eq!(cpu(""), std::env::consts::ARCH);
    }

    #[test]
    fn current_host_has_cores_memory_and_kernel_version() {
        let host = look();
        assert!(host.cores > 0 && host.memory_bytes > 0, "{host:?}");
        assert!(host.kernel.len() > "Linux ".len(), "{host:?}");
    }
}
