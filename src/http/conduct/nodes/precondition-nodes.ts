/**
 * Preconditions in the order of RFC 9110 §13.2.2. They follow every other refusal, because RFC 9110 §13.2.1 ignores them where the response without
 * them would not be 2xx or 412.
 */
import { answer, type Nodes, refuse, to } from '../node.ts';

export const preconditionNodes = {
  match_required: {
    section: 'RFC 6585 §3',
    question: 'Is If-Match required and missing, and does nothing else refuse the change?',
    want: 'preconditions',
    ask: (facts) =>
      facts.ifMatch === undefined
        ? undefined
        : // A false If-None-Match ends in 412 anyway, which answers what `If-None-Match: *` asked (RFC 9110 §13.1.2).
          facts.matchRequired &&
          facts.exists === true &&
          facts.ifMatch === 'absent' &&
          facts.ifNoneMatch !== 'false',
    yes: refuse('precondition_required'),
    no: to('if_match_given'),
  },
  if_match_given: {
    section: 'RFC 9110 §13.2.2 step 1',
    question: 'Is If-Match given?',
    ask: (facts) => facts.ifMatch !== 'absent',
    yes: to('if_match_true'),
    no: to('if_unmodified_since_false'),
  },
  if_match_true: {
    section: 'RFC 9110 §13.1.1',
    question: 'Does If-Match name the current representation (strong comparison)?',
    ask: (facts) => facts.ifMatch === 'true',
    yes: to('if_none_match_given'),
    no: refuse('precondition_failed'),
  },
  if_unmodified_since_false: {
    section: 'RFC 9110 §13.2.2 step 2',
    question: 'Has it changed since If-Unmodified-Since?',
    ask: (facts) => facts.ifUnmodifiedSince === 'false',
    yes: refuse('precondition_failed'),
    no: to('if_none_match_given'),
  },
  if_none_match_given: {
    section: 'RFC 9110 §13.2.2 step 3',
    question: 'Is If-None-Match given?',
    ask: (facts) => facts.ifNoneMatch !== 'absent',
    yes: to('if_none_match_true'),
    no: to('if_modified_since_false'),
  },
  if_none_match_true: {
    section: 'RFC 9110 §13.1.2',
    question: 'Does If-None-Match name no current representation (weak comparison)?',
    ask: (facts) => facts.ifNoneMatch === 'true',
    yes: to('safe'),
    no: to('if_none_match_safe'),
  },
  if_none_match_safe: {
    section: 'RFC 9110 §13.1.2',
    question: 'Is the method GET, HEAD or QUERY?',
    ask: (facts) => facts.method === 'GET' || facts.method === 'HEAD' || facts.method === 'QUERY',
    yes: answer('not_modified'),
    no: refuse('precondition_failed'),
  },
  if_modified_since_false: {
    section: 'RFC 9110 §13.2.2 step 4',
    question: 'Is it unchanged since If-Modified-Since (GET, HEAD, QUERY)?',
    ask: (facts) => facts.ifModifiedSince === 'false',
    yes: answer('not_modified'),
    no: to('safe'),
  },
} as const satisfies Nodes;
