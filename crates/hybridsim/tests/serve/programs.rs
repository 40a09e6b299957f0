//! Real programs as clients. A program that is not installed is skipped, and named.

use super::server::Server;
use super::{DISK, folder, ssd};
use std::path::Path;
use std::process::Command;

/// A simulated disk that is large enough for a file system.
const BIG: &str =
    "[component.d]\nkind = \"constant-device\"\ncapacity = \"1GiB\"\nlatency = \"50us\"\n";

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: `{program}` is not installed");
    }
    found
}

fn shell(folder: &Path, server: &Server, commands: &str) -> String {
    let uri = format!("nbd+unix:///?socket={}", server.socket.display());
    let output = Command::new("sh")
        .args(["-ec", commands])
        .current_dir(folder)
        .env("URI", uri)
        .env("SOCKET", &server.socket)
        .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").expect("a PATH")))
        .output()
        .expect("a shell");
    let both = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&both).into_owned();
    assert!(output.status.success(), "{commands}\n{text}");
    text
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !is_installed("fio") {
        return;
    }
    let folder = folder();
    let server = Server::start(folder.path(), BIG, &[]);
    let engines = Command::new("fio").arg("--enghelp").output().expect("fio starts");
    if !String::from_utf8_lossy(&engines.stdout).contains("nbd") {
        return eprintln!("skipped: this fio has no nbd engine");
    }
    shell(
        folder.path(),
        &server,
        "fio --name=v --ioengine=nbd --uri=\"$URI\" --rw=randrw --bs=4k --iodepth=16 --size=16m \
         --verify=crc32c --randrepeat=1 --output=fio.txt",
    );
    let results = server.stop();
    assert!(results["requests"].as_u64() >= Some(4096), "{}", results["requests"]);
    assert_eq!(results["served"]["errors"], 0);
}

#[test]
fn nbdinfo_and_nbdcopy_agree() {
    if !is_installed("nbdinfo") || !is_installed("nbdcopy") {
        return;
    }
    let folder = folder();
    let server = Server::start(folder.path(), &ssd(), &[]);
    let text = shell(
        folder.path(),
        &server,
        "nbdinfo \"$URI\"; head -c 3000000 /dev/urandom > in; truncate -s 4M in\n\
         nbdcopy in \"$URI\"; nbdcopy \"$URI\" out; cmp -n 4194304 in out; nbdinfo --map \"$URI\"",
    );
    for word in ["can_multi_conn: true", "can_trim: true", "can_fua: true", "base:allocation"] {
        assert!(text.contains(word), "{word} is missing in\n{text}");
    }
    assert!(text.contains("hole"), "{text}");
}

#[test]
fn qemu_converts_an_image_and_back() {
    if !is_installed("qemu-img") || !is_installed("qemu-io") {
        return;
    }
    let folder = folder();
    let server = Server::start(folder.path(), &ssd(), &[]);
    shell(
        folder.path(),
        &server,
        "qemu-io -f raw -c 'write -P 0xab 1M 256k' -c 'read -P 0xab 1M 256k' -c 'write -z 1M 64k' \
         -c 'read -P 0 1M 64k' -c 'discard 1200k 4k' -c flush \"$URI\"\n\
         qemu-img convert -f raw -O qcow2 \"$URI\" image.qcow2\n\
         qemu-img compare -f raw -F qcow2 \"$URI\" image.qcow2",
    );
}

#[test]
fn a_file_system_is_made_and_checked() {
    if !["nbdcopy", "mke2fs", "e2fsck", "nbdfuse"].iter().all(|it| is_installed(it)) {
        return;
    }
    if !Path::new("/dev/fuse").exists() {
        return eprintln!("skipped: there is no /dev/fuse");
    }
    let folder = folder();
    let server = Server::start(folder.path(), BIG, &[]);
    let text = shell(
        folder.path(),
        &server,
        "mkdir m; nbdfuse m \"$URI\" & mount=$!\n\
         for i in $(seq 100); do [ -e m/nbd ] && break; sleep 0.1; done\n\
         [ -e m/nbd ] || { kill $mount; echo cannot mount; exit 0; }\n\
         timeout 60 mke2fs -q -F -t ext4 m/nbd; timeout 60 e2fsck -f -n m/nbd\n\
         kill $mount; wait $mount || true",
    );
    if text.contains("cannot mount") {
        return eprintln!("skipped: nbdfuse cannot mount here\n{text}");
    }
    assert!(text.contains("Pass 5"), "{text}");
    assert!(server.stop()["requests"].as_u64() > Some(10));
}

/// A Python that has SQLite with file systems of one's own.
fn python() -> Option<&'static str> {
    let has_it = |python: &&str| {
        let tried = Command::new(python).args(["-c", "import apsw"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has_it);
    if found.is_none() {
        eprintln!("skipped: Python has no module `apsw`");
    }
    found
}

/// Runs SQLite over the served device until the power fails, eight times, and checks what is there
/// afterwards. Returns what the script prints.
fn sqlite(python: &str, system: &str, option: &str) -> String {
    let folder = folder();
    // Think time would let the disk empty its buffer.
    let args = ["--control", "unix:control.sock", "--time-scale", "0"];
    let args = [&args[..], &["--export", "db=8MiB", "--export", "wal=8MiB"]].concat();
    let server = Server::start(folder.path(), system, &args);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve/sqlite.py");
    let command = format!("{python} {script} \"$SOCKET\" control.sock {option}");
    let text = shell(folder.path(), &server, &command);
    assert_eq!(server.stop()["served"]["power_cuts"], 8, "{text}");
    text
}

#[test]
fn sqlite_keeps_its_transactions_as_far_as_the_device_promises() {
    let Some(python) = python() else { return };
    let safe = "8 power failures, 0 transactions lost, 0 corrupt";
    let text = sqlite(python, DISK, "");
    assert!(text.contains(safe), "a volatile buffer that is flushed: {text}");
    let text = sqlite(python, &format!("{DISK}write_cache = false\n"), "--no-flush");
    assert!(text.contains(safe), "no buffer: {text}");
    let text = sqlite(python, DISK, "--no-flush");
    assert!(text.contains("without flushes") && !text.contains(safe), "a volatile buffer: {text}");
}
