/** A server that is a proxy: CONNECT to the destination that the target names (RFC 9110 §9.3.6). */
import { type Answer, fieldOf, listOf, valuesOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, holds, holdsIf } from '../clause.ts';
import { CannotApply, type Visit } from '../visit.ts';

export const tunnelClauses: readonly Clause[] = [
  {
    id: 'tunnel-opens',
    group: 'tunnel',
    title: 'A CONNECT that opens a tunnel is answered 2xx without Content-Length and Transfer-Encoding',
    section: 'RFC 9110 §9.3.6',
    level: 'must',
    judge: async (visit) => {
      const answer = await connect(visit, destinationOf(visit), credentialsOf(visit));
      if (answer.status >= 300) return deviates(`it is answered ${answer.status}`);
      const framed = ['Content-Length', 'Transfer-Encoding'].filter(
        (name) => fieldOf(answer, name) !== undefined,
      );
      return holdsIf(framed.length === 0, `the ${answer.status} has ${framed.join(' and ')}`);
    },
  },
  {
    id: 'tunnel-challenge',
    group: 'tunnel',
    title: 'A CONNECT without credentials is answered 407 with a challenge in Proxy-Authenticate',
    section: 'RFC 9110 §15.5.8',
    level: 'must',
    judge: async (visit) => {
      if (Object.keys(credentialsOf(visit)).length === 0)
        return cannotApply('the target has no credentials for the tunnel');
      const answer = await connect(visit, destinationOf(visit), {});
      if (answer.status !== 407) return deviates(`it is answered ${answer.status}`);
      return holdsIf(listOf(answer, 'Proxy-Authenticate').length > 0, 'the 407 has no Proxy-Authenticate');
    },
  },
  {
    id: 'tunnel-port',
    group: 'tunnel',
    title: 'A CONNECT without a port is refused',
    section: 'RFC 9110 §9.3.6',
    level: 'must',
    judge: async (visit) => {
      const [host = ''] = destinationOf(visit).split(/:\d+$/);
      const { status } = await connect(visit, host, credentialsOf(visit));
      return holdsIf(status >= 400 && status < 500, `CONNECT ${host} is answered ${status}`);
    },
  },
  {
    id: 'tunnel-wrong-credentials',
    group: 'tunnel',
    title: 'Proxy credentials that are not valid are answered 407, and those for the origin do not count',
    section: 'RFC 9110 §11.7.1',
    level: 'must',
    judge: async (visit) => {
      const credentials = credentialsOf(visit);
      const [value] = Object.values(credentials);
      if (value === undefined) return cannotApply('the target has no credentials for the tunnel');
      for (const headers of [
        { 'Proxy-Authorization': 'Basic Y29uZHVjdDpjb25kdWN0' },
        { Authorization: value },
      ]) {
        const answer = await connect(visit, destinationOf(visit), headers);
        if (answer.status !== 407)
          return deviates(`${Object.keys(headers).join()} is answered ${answer.status}`);
        if (valuesOf(answer, 'Proxy-Authenticate').length === 0)
          return deviates('the 407 has no Proxy-Authenticate');
      }
      return holds;
    },
  },
];

function destinationOf({ target }: Visit): string {
  if (target.tunnel === undefined) throw new CannotApply('the target names no destination of a tunnel');
  return target.tunnel.destination;
}

function credentialsOf({ target }: Visit): Readonly<Record<string, string>> {
  return target.tunnel?.headers ?? {};
}

function connect(visit: Visit, path: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  return visit.send({ method: 'CONNECT', path, headers: { Host: path, ...headers }, isAnonymous: true });
}
