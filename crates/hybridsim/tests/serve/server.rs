//! A server under test.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

pub struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    pub socket: PathBuf,
}

impl Server {
    /// Serves `scenario` (text) from `folder` with further arguments.
    pub fn start(folder: &Path, scenario: &str, args: &[&str]) -> Self {
        std::fs::write(folder.join("served.toml"), scenario).expect("one's own folder");
        let socket = folder.join("nbd.sock");
        let mut child = Command::new(env!("CARGO_BIN_EXE_hybridsim"))
            .args(["serve", "served.toml", "--json", "--no-cache", "--nbd"])
            .arg(format!("unix:{}", socket.display()))
            .args(args)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut all = String::new();
        while !all.contains("serving ") {
            let count = stderr.read_line(&mut all).expect("text");
            assert!(count > 0, "the server ended: {all}");
        }
        Self { child, stderr, socket }
    }

    /// Sends a request to the control socket `control` in the folder of the server.
    pub fn control(&self, request: &str) -> Value {
        let path = self.socket.with_file_name("control.sock");
        let mut stream = UnixStream::connect(path).expect("the server listens");
        stream.write_all(format!("{request}\n").as_bytes()).expect("a socket");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("a reply");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Memory of the server in bytes, where `/proc` says so.
    pub fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    }

    /// Ends the server as Ctrl-C does; returns its results.
    pub fn stop(self) -> Value {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args(["-INT", &id]).status().expect("kill");
        assert!(killed.success());
        self.wait()
    }

    /// Waits for a server that fails at its end; returns what it says.
    pub fn fail(mut self) -> String {
        let mut errors = String::new();
        self.stderr.read_to_string(&mut errors).expect("text");
        assert!(!self.child.wait().expect("it runs").success(), "{errors}");
        errors
    }

    /// Waits for a server that ends by itself.
    pub fn wait(mut self) -> Value {
        let mut text = String::new();
        let stdout = self.child.stdout.as_mut().expect("it is piped");
        stdout.read_to_string(&mut text).expect("text");
        let mut errors = String::new();
        self.stderr.read_to_string(&mut errors).expect("text");
        let status = self.child.wait().expect("it runs");
        assert!(status.success(), "{status}\n{errors}\n{text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{errors}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
