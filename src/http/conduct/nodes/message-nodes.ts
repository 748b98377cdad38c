/**
 * What the message itself shows: method, target, Host, framing, and whether the resource takes the method
 * (§4.8, §4.11; RFC 9112 §3.2, §6.1).
 */
import { answer, refuse, to } from '../edge.ts';
import type { Nodes } from '../node.ts';

export const messageNodes = {
  method_known: {
    section: 'RFC 9110 §9.1',
    question: 'Does the server know the method?',
    ask: (facts) => facts.methodKnown,
    yes: to('target_fits'),
    no: refuse('method_unknown'),
  },
  target_fits: {
    section: '§8',
    question: 'Is the request target within its length?',
    ask: (facts) => facts.targetFits,
    yes: to('target_valid'),
    no: refuse('target_too_long'),
  },
  target_valid: {
    section: 'RFC 9112 §3.2',
    question: 'Is the request target well-formed?',
    ask: (facts) => facts.targetValid,
    yes: to('host_valid'),
    no: refuse('target_invalid'),
  },
  host_valid: {
    section: 'RFC 9112 §3.2',
    question: 'Is there exactly one valid Host?',
    ask: (facts) => facts.hostValid,
    yes: to('fields_sound'),
    no: refuse('host_invalid'),
  },
  fields_sound: {
    section: 'RFC 9110 §5.3',
    question: 'Did each field that allows one value come at most once?',
    ask: (facts) => facts.fieldsSound,
    yes: to('transfer_coding_understood'),
    no: refuse('field_invalid'),
  },
  transfer_coding_understood: {
    section: 'RFC 9112 §6.1',
    question: 'Is the transfer coding understood?',
    ask: (facts) => facts.transferCodingUnderstood,
    yes: to('expectation_met'),
    no: refuse('transfer_coding_unknown'),
  },
  expectation_met: {
    section: 'RFC 9110 §10.1.1',
    question: 'Can the expectation be met?',
    ask: (facts) => facts.expectationMet,
    yes: to('server_wide'),
    no: refuse('expectation_failed'),
  },
  server_wide: {
    section: '§4.8',
    question: 'Is the target the server as a whole (OPTIONS *)?',
    ask: (facts) => facts.serverWide,
    yes: answer('server_options'),
    no: to('trace_asked'),
  },
  trace_asked: {
    section: '§4.11',
    question: 'Is it TRACE, and is TRACE enabled?',
    ask: (facts) => facts.traceEnabled && facts.method === 'TRACE',
    yes: to('trace_has_content'),
    no: to('routed'),
  },
  trace_has_content: {
    section: '§4.11.1',
    question: 'Does the TRACE carry content?',
    ask: (facts) => facts.hasContent,
    yes: refuse('content_unexpected'),
    no: answer('trace'),
  },
  routed: {
    section: '§7',
    question: 'Is there a resource behind the path?',
    ask: (facts) => facts.routed,
    yes: to('preflight'),
    no: refuse('not_found'),
  },
  preflight: {
    section: '§4.8',
    question: 'Is it a cross-origin preflight?',
    ask: (facts) => facts.preflight,
    yes: answer('preflight'),
    no: to('method_allowed'),
  },
  method_allowed: {
    section: 'RFC 9110 §15.5.6',
    question: 'Does the resource support the method?',
    ask: (facts) => facts.methodAllowed,
    yes: to('options_asked'),
    no: refuse('method_not_allowed'),
  },
  options_asked: {
    section: '§4.8',
    question: 'Is it OPTIONS?',
    ask: (facts) => facts.method === 'OPTIONS',
    yes: answer('options'),
    no: to('conversing'),
  },
  conversing: {
    section: '§4.13',
    question: 'Is the resource spoken to over an upgraded connection alone?',
    ask: (facts) => facts.conversing,
    yes: to('handshake_absent'),
    no: to('rate_exceeded'),
  },
  handshake_absent: {
    section: 'RFC 9110 §15.5.22',
    question: 'Does the request ask for no upgrade?',
    ask: (facts) => facts.handshake === 'absent',
    yes: refuse('upgrade_required'),
    no: to('handshake_sound'),
  },
  handshake_sound: {
    section: '§4.13, §9, RFC 6455 §4.2.1',
    question: 'Is the opening handshake complete and of a version that is spoken here?',
    ask: (facts) => facts.handshake === 'sound',
    yes: to('rate_exceeded'),
    no: refuse('handshake_invalid'),
  },
} as const satisfies Nodes;
