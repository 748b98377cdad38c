# Comity behind Varnish: COMITY_BEHIND_PROXY=on, COMITY_PUBLIC_URL=https://shop.example
# Varnish has no TLS: a program in front of it ends TLS and tells it the client's address with the PROXY protocol.
vcl 4.1;

backend comity {
  .host = "127.0.0.1";
  .port = "4000";
  .first_byte_timeout = 60s;
  .between_bytes_timeout = 1h;
}

sub vcl_recv {
  # Varnish has appended the client's address to what a client sent: the last address counts. This leaves it alone.
  set req.http.X-Forwarded-For = client.ip;
  set req.http.X-Forwarded-Proto = "https";
  if (req.http.Upgrade ~ "(?i)^websocket$") {
    return (pipe);
  }
  # Only WebSocket upgrades are forwarded.
  unset req.http.Upgrade;
  # Every request goes to Comity, also with methods that Varnish does not know, such as QUERY.
  return (pass);
}

sub vcl_pipe {
  set bereq.http.Upgrade = req.http.Upgrade;
  set bereq.http.Connection = "Upgrade";
}

sub vcl_backend_response {
  # Comity compresses; Varnish would weaken its entity tags. Events and other content pass as they come.
  set beresp.do_gzip = false;
  set beresp.do_gunzip = false;
  set beresp.do_stream = true;
}
