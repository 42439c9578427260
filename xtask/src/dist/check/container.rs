//! The image as a container: read-only root, no capabilities, and the system calls that the unit
//! of systemd allows.

use super::super::image::{TAG, USER};
use super::served::Served;
use super::{must, origin, require, unit};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::failure::{During, Failure};
use xtask::files::read_json;
use xtask::workplace::Workplace;

/// Runs it by runc, and requests a page twice.
pub(super) fn check(image: &Path) -> Result<(), Failure> {
    let place = Workplace::make("image")?;
    let layout = place.path().join("layout");
    fs::create_dir(&layout).during("make a directory")?;
    let mut tar = Command::new("tar");
    must(tar.arg("-xf").arg(image).arg("-C").arg(&layout))?;
    let bundle = place.path().join("bundle");
    let name = format!("{}:{TAG}", layout.display());
    must(
        Command::new("umoci")
            .args(["unpack", "--image", &name])
            .arg(&bundle),
    )?;
    let file = bundle.join("config.json");
    let mut config: Value = read_json(&file)?;
    let uid = config["process"]["user"]["uid"].as_u64();
    require(uid == Some(u64::from(USER)), || {
        format!("its user is {uid:?}")
    })?;
    let words = &config["process"]["args"];
    require(words[0] == "/usr/bin/weir" && words[1] == "serve", || {
        format!("its command is {words}")
    })?;
    confine(&mut config)?;
    fs::write(&file, config.to_string()).during("write the container's configuration")?;

    let container = format!("weir-dist-{}", std::process::id());
    let mut runc = Command::new("runc");
    runc.arg("--root").arg(place.path().join("runc"));
    let served = Served::start(runc.args(["run", "--bundle"]).arg(&bundle).arg(&container))?;
    let origin = origin::start()?;
    for expected in ["weir;fwd=uri-miss;fwd-status=200;stored", "weir;hit;"] {
        let status = served.get(origin)?;
        require(status.starts_with(expected), || {
            format!("Cache-Status in a container: {status}")
        })?;
    }
    served.stop()
}

/// No network of its own, as the origin and the client are here; ports that the system chooses.
fn confine(config: &mut Value) -> Result<(), Failure> {
    config["root"]["readonly"] = json!(true);
    config["process"]["terminal"] = json!(false);
    config["process"]["noNewPrivileges"] = json!(true);
    config["process"]["capabilities"] = json!({});
    config["process"]["args"] = json!([
        "/usr/bin/weir",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--allow-destination",
        "127.0.0.0/8",
        "--disk",
        "64MiB"
    ]);
    if let Some(namespaces) = config["linux"]["namespaces"].as_array_mut() {
        namespaces.retain(|it| it["type"] != "network");
    }
    config["linux"]["seccomp"] = json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "syscalls": [{ "names": unit::system_calls()?, "action": "SCMP_ACT_ALLOW" }],
    });
    let volume = json!({
        "destination": "/var/cache/weir",
        "type": "tmpfs",
        "source": "tmpfs",
        "options": [format!("uid={USER}"), format!("gid={USER}"), "mode=0700"],
    });
    // beside or in place of one for the image's volume
    let mounts = config["mounts"].as_array_mut();
    if let Some(mounts) = mounts {
        mounts.retain(|it| it["destination"] != volume["destination"]);
        mounts.push(volume);
    }
    Ok(())
}
