/** What is told whoever asks that something be sent to an endpoint to which nothing is sent. */
import type { Problem } from '../../../http/problem.ts';

export const disabledProblem: Problem = {
  code: 'endpoint_unavailable',
  message: 'the endpoint is disabled; set status to enabled first',
};
