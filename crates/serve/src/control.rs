//! The control socket: requests and replies are JSON objects, one a line.
//!
//! `{"do": "status"}` returns the simulated time and the requests outstanding,
//! `{"do": "cut-power"}` lets the power fail.

use crate::server::{ACCEPT_PAUSE, Server};
use crate::stream::{Listener, Stream};
use bytes::{Buf, BytesMut};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::rc::Rc;

/// The longest line.
const LINE_BYTES_MAX: usize = 4096;

/// Serves the control socket.
pub async fn listen(listener: Listener, server: Rc<Server>) {
    loop {
        match listener.accept().await {
            Ok(stream) => drop(tokio::task::spawn_local(converse(stream, Rc::clone(&server)))),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn converse(stream: Stream, server: Rc<Server>) {
    let mut buffer = BytesMut::new();
    loop {
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line = buffer.split_to(end + 1);
            let reply = format!("{}\n", answer(&line, &server));
            let mut reply = reply.as_bytes();
            while !reply.is_empty() {
                if stream.writable().await.is_err() {
                    return;
                }
                match stream.try_write(reply) {
                    Ok(count) => reply.advance(count),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    // The client has left.
                    Err(_) => return,
                }
            }
        }
        if buffer.len() > LINE_BYTES_MAX {
            return;
        }
        buffer.reserve(LINE_BYTES_MAX);
        if !matches!(stream.read(&mut buffer).await, Ok(1..)) {
            return;
        }
    }
}

fn answer(line: &[u8], server: &Server) -> Value {
    let Ok(Value::Object(request)) = serde_json::from_slice(line) else {
        return json!({ "error": "a request is a JSON object on one line" });
    };
    match request.get("do").and_then(Value::as_str) {
        Some("status") => {
            let (time_ns, outstanding) = server.status();
            json!({ "time_ns": time_ns, "outstanding": outstanding })
        }
        Some("cut-power") => match server.cut_power() {
            Ok(time_ns) => json!({ "time_ns": time_ns }),
            Err(error) => json!({ "error": error }),
        },
        _ => json!({ "error": "`do` is `status` or `cut-power`" }),
    }
}
