/** Which status code ends a WebSocket whose client broke the protocol (RFC 6455 §7.4.1), by what the receiver complained of. */

const codes: { readonly [code: string]: number | undefined } = {
  WS_ERR_INVALID_UTF8: 1007,
  // Fragments of one message, or pieces of a frame, without end.
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  // Of zlib: the message grows beyond its bound.
  ERR_BUFFER_TOO_LARGE: 1009,
};

/** 1007 for what cannot be inflated, 1002 for whatever is not listed. */
export function failureCodeOf(error: Error & { readonly code?: unknown }): number {
  const { code } = error;
  if (typeof code !== 'string') return 1002;
  return codes[code] ?? (code.startsWith('Z_') ? 1007 : 1002);
}
