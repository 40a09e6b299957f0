//! The control socket: requests and replies are JSON objects, one a line.
//!
//! `{"do": "status"}` returns the simulated time, the requests outstanding and the faults that each
//! component takes, `{"do": "cut-power"}` lets the power fail, and the names of [`Injected`] with
//! their keys ([`FaultOrder`]) let a component fail.

use crate::server::Server;
use crate::stream::{Listener, Stream};
use bytes::{Buf, BytesMut};
use hybridsim_engine::Injected;
use hybridsim_simulation::faults::FaultOrder;
use serde_json::{Map, Value, json};
use std::io::ErrorKind;
use std::rc::Rc;

const LINE_BYTES_MAX: usize = 4096;

/// Serves the control socket.
pub async fn listen(listener: Listener, server: Rc<Server>) {
    loop {
        tokio::task::spawn_local(converse(listener.next().await, Rc::clone(&server)));
    }
}

async fn converse(stream: Stream, server: Rc<Server>) {
    let mut buffer = BytesMut::new();
    loop {
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line = buffer.split_to(end + 1);
            if !reply(&stream, &answer(&line, &server)).await {
                return;
            }
        }
        if buffer.len() > LINE_BYTES_MAX {
            let message = format!("a line is longer than {LINE_BYTES_MAX} bytes");
            reply(&stream, &json!({ "error": message })).await;
            return;
        }
        buffer.reserve(LINE_BYTES_MAX);
        if !matches!(stream.read(&mut buffer).await, Ok(1..)) {
            return;
        }
    }
}

/// Sends `value` as a line; false when the client has left.
async fn reply(stream: &Stream, value: &Value) -> bool {
    let line = format!("{value}\n");
    let mut line = line.as_bytes();
    while !line.is_empty() {
        if stream.writable().await.is_err() {
            return false;
        }
        match stream.try_write(line) {
            Ok(count) => line.advance(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
    }
    true
}

fn answer(line: &[u8], server: &Server) -> Value {
    let Ok(Value::Object(request)) = serde_json::from_slice(line) else {
        return json!({ "error": "a request is a JSON object on one line" });
    };
    match request.get("do").and_then(Value::as_str) {
        Some("status") => {
            let (time_ns, outstanding) = server.status();
            let faults: Map<String, Value> = server
                .supported_faults()
                .into_iter()
                .map(|(name, takes)| (name, json!(takes)))
                .collect();
            json!({ "time_ns": time_ns, "outstanding": outstanding, "faults": faults })
        }
        Some("cut-power") => match server.cut_power() {
            Ok(time_ns) if server.is_recording() => {
                let note =
                    "the recorded trace has no power failures: a replay of it differs from here";
                json!({ "time_ns": time_ns, "note": note })
            }
            Ok(time_ns) => json!({ "time_ns": time_ns }),
            Err(error) => json!({ "error": error }),
        },
        Some(fault) if Injected::NAMES.contains(&fault) => {
            match FaultOrder::from_json(&request).and_then(|order| server.inject(&order)) {
                Ok(time_ns) => json!({ "time_ns": time_ns }),
                Err(error) => json!({ "error": error }),
            }
        }
        _ => {
            let faults = Injected::NAMES.join("`, `");
            json!({ "error": format!("`do` is one of `status`, `cut-power`, `{faults}`") })
        }
    }
}
