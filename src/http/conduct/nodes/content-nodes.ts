/**
 * What is asked for: an acceptable representation, the content and its type (§4.4, §4.9; RFC 9110 §8, §12),
 * and the Idempotency-Key it comes under.
 */
import { refuse, to } from '../edge.ts';
import type { Nodes } from '../node.ts';

export const contentNodes = {
  acceptable: {
    section: 'RFC 9110 §12.5.1',
    question: 'Is there a representation that Accept allows?',
    ask: (facts) => facts.acceptable,
    yes: to('content_defined'),
    no: refuse('not_acceptable'),
  },
  content_defined: {
    section: '§4.1',
    question: 'Has content a meaning with this method here?',
    ask: (facts) => facts.contentDefined,
    yes: to('content_raw'),
    no: to('exists'),
  },
  content_raw: {
    section: '§4.14.1',
    question: 'Is content taken here as it came, of any type or none?',
    ask: (facts) => facts.contentRaw,
    yes: to('content_fits'),
    no: to('content_present'),
  },
  content_present: {
    section: '§4.4, §4.9.1',
    question: 'Is there content, or a type for empty content?',
    ask: (facts) => facts.hasContent || facts.contentTypeGiven,
    yes: to('content_type_given'),
    no: refuse('content_missing'),
  },
  content_type_given: {
    section: '§4.4.1, §4.9.1',
    question: 'Is Content-Type given?',
    ask: (facts) => facts.contentTypeGiven,
    yes: to('content_type_supported'),
    no: to('content_type_missing_query'),
  },
  content_type_missing_query: {
    section: 'RFC 10008 §2',
    question: 'Is it a QUERY, which must name its type?',
    ask: (facts) => facts.method === 'QUERY',
    yes: refuse('content_type_missing'),
    no: refuse('media_type_unsupported'),
  },
  content_type_supported: {
    section: 'RFC 9110 §15.5.16',
    question: 'Does the resource take this media type with this method?',
    ask: (facts) => facts.contentTypeSupported,
    yes: to('content_coding_supported'),
    no: refuse('media_type_unsupported'),
  },
  content_coding_supported: {
    section: 'RFC 9110 §8.4',
    question: 'Can the content coding be decoded?',
    ask: (facts) => facts.contentCodingSupported,
    yes: to('content_fits'),
    no: refuse('content_coding_unsupported'),
  },
  content_fits: {
    section: 'RFC 9110 §15.5.14',
    question: 'Is the announced length within the limit?',
    ask: (facts) => facts.contentFits,
    yes: to('content_sound'),
    no: refuse('content_too_large'),
  },
  content_sound: {
    section: '§7',
    question: 'Does the content follow its media type?',
    want: 'content',
    ask: (facts) => (facts.contentProblem === undefined ? undefined : facts.contentProblem === null),
    yes: to('idempotency_key_malformed'),
    no: {
      refuse: [
        'content_malformed',
        'content_missing',
        'content_too_large',
        'patch_malformed',
        'request_timeout',
        'signature_invalid',
        'signature_stale',
        'unavailable',
      ],
      pick: (facts) => facts.contentProblem,
    },
  },
  idempotency_key_malformed: {
    section: 'Idempotency-Key §2.1',
    question: 'Is the Idempotency-Key malformed?',
    ask: (facts) => facts.idempotencyKey === 'malformed',
    yes: refuse('field_invalid'),
    no: to('idempotency_key_given'),
  },
  idempotency_key_given: {
    section: 'Idempotency-Key §2',
    question: 'Does the request carry an Idempotency-Key?',
    ask: (facts) => facts.idempotencyKey === 'given',
    yes: to('idempotency_replay'),
    no: to('exists'),
  },
  idempotency_replay: {
    section: 'Idempotency-Key §2.6',
    question: 'Was this very request answered before?',
    want: 'idempotency',
    ask: (facts) => (facts.idempotency === undefined ? undefined : facts.idempotency === 'replay'),
    yes: to('change_made'),
    no: to('idempotency_running'),
  },
  idempotency_running: {
    section: 'Idempotency-Key §2.6',
    question: 'Is the first request with this key still running?',
    ask: (facts) => facts.idempotency === 'running',
    yes: refuse('idempotency_key_in_use'),
    no: to('idempotency_other'),
  },
  idempotency_other: {
    section: 'Idempotency-Key §2.7',
    question: 'Was the key used for another request?',
    ask: (facts) => facts.idempotency === 'other',
    yes: refuse('idempotency_key_reused'),
    no: to('exists'),
  },
} as const satisfies Nodes;
