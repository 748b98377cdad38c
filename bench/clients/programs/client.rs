//! Rust's reqwest, with its defaults (plain) or its settings (set): a request a line in, its response a line out (line-exchange.ts has the form).
use base64::{engine::general_purpose::STANDARD, Engine};
use reqwest::blocking::Client;
use std::io::{stdin, BufRead, Read};

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let builder = Client::builder();
    let client = if mode == "set" {
        let passing = reqwest::retry::for_host("127.0.0.1")
            .max_retries_per_request(2)
            .classify_fn(|attempt| {
                let refused = attempt.status().map(|status| status.as_u16());
                if refused.is_none() || refused == Some(503) { attempt.retryable() } else { attempt.success() }
            });
        builder.retry(passing)
    } else {
        // The features gzip, brotli and zstd are no defaults.
        builder.no_gzip().no_brotli().no_zstd()
    };
    let client = client.build().expect("a client");
    for line in stdin().lock().lines() {
        let line = line.expect("a line");
        match send(&client, &line.split('\t').collect::<Vec<_>>()) {
            Ok(answer) => println!("{answer}"),
            Err(error) => println!("error\t{}", format!("{error:?}").replace(['\n', '\t'], " ")),
        }
    }
}

fn send(client: &Client, parts: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
    let method = reqwest::Method::from_bytes(parts[0].as_bytes())?;
    let mut request = client.request(method, parts[1]);
    let content = STANDARD.decode(parts[2])?;
    if !content.is_empty() {
        request = request.body(content);
    }
    let mut is_stream = false;
    for field in &parts[3..] {
        let (name, value) = field.split_once(": ").unwrap_or((field, ""));
        is_stream |= value == "text/event-stream";
        request = request.header(name, value);
    }
    let mut answer = request.send()?;
    let mut out = vec![answer.status().as_u16().to_string(), String::new()];
    for (name, value) in answer.headers() {
        out.push(format!("{name}: {}", value.to_str().unwrap_or("")));
    }
    let mut body = Vec::new();
    if is_stream {
        let mut octet = [0; 1];
        while !String::from_utf8_lossy(&body).contains("\ndata:") && answer.read(&mut octet)? > 0 {
            body.push(octet[0]);
        }
    } else {
        answer.read_to_end(&mut body)?;
    }
    out[1] = STANDARD.encode(body);
    Ok(out.join("\t"))
}
