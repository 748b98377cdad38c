/**
 * `GET {base}/auth/oauth/{provider}` leads a browser to a provider, `.../callback` is where it comes back to (§5.3, surface "Auth"). Both
 * are reads by their method alone: what they do is done by `propose`, which runs once for a request.
 *
 * With `redirect` the browser goes on to a page with a session cookie, without it the tokens are the answer. `link=true` adds the identity
 * to the account that is logged in; that takes a session, and no page of another site may ask for it.
 */

import { readBrowserSecret } from '../../auth/oauth/browser-cookie.ts';
import type { OAuth, Start } from '../../auth/oauth/oauth.ts';
import { redirectTarget } from '../../auth/oauth/redirect-target.ts';
import type { Request } from '../../http/message.ts';
import type { Problem } from '../../http/problem.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { Ask, Operation, Proposal, Representation, Resource, Standing } from '../resource.ts';

export type OAuthResourcesOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly oauth: OAuth;
  /** Serialized origins that may send credentials, and that a browser may be led to. */
  readonly redirectOrigins: ReadonlySet<string>;
  /** True where a page of a site that is neither ours nor allowed has sent the request. */
  readonly crossSite: (request: Request) => boolean;
  readonly addressOf: (request: Request) => string;
};

type Starting = Standing & { readonly asked: Asked };
type Asked = { readonly redirect: string | null; readonly link: boolean } | { readonly problem: Problem };
type Finishing = Proposal & { readonly content?: Readonly<Record<string, unknown>> };

export function oauthResources(options: OAuthResourcesOptions): readonly Resource[] {
  const path = `${options.base}/auth/oauth/{provider}`;
  return [resource(path, startOperation(options)), resource(`${path}/callback`, finishOperation(options))];
}

function resource(pattern: string, operation: unknown): Resource {
  return {
    pattern,
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: ['application/json'],
  };
}

function startOperation(options: OAuthResourcesOptions): Operation<Starting, never, Proposal> {
  const { oauth, redirectOrigins, crossSite } = options;
  return {
    permission: () => 'granted',
    standing: (ask) => {
      const asked = readStart(ask.query, redirectOrigins);
      const permitted = 'problem' in asked || !asked.link || mayLink(ask, crossSite);
      return { exists: oauth.has(providerOf(ask)), visible: true, permitted, asked };
    },
    propose: async (ask, { asked }) => {
      if ('problem' in asked) return asked;
      const started = await oauth.start({
        provider: providerOf(ask),
        redirect: asked.redirect,
        link: asked.link ? linkOf(ask) : null,
        browser: readBrowserSecret(ask.request.fields.cookie),
      });
      if (started.kind === 'refused') return { problem: started.problem };
      return { problem: null, elsewhere: started.location, elsewhereFields: started.fields };
    },
  };
}

function finishOperation({ oauth, addressOf }: OAuthResourcesOptions): Operation<Standing, never, Finishing> {
  return {
    permission: () => 'granted',
    standing: (ask) => ({ exists: oauth.has(providerOf(ask)), visible: true, permitted: true }),
    propose: async (ask) => {
      const { method, fields } = ask.request;
      // Such a request can only end in 412 and must change nothing (RFC 9110 §13.1.1).
      if (fields.ifMatch !== undefined) return { problem: null };
      const parameters = readOnce(ask.query);
      // Whoever looks at a link before it is followed must not use it up.
      if (method === 'HEAD' || parameters === undefined) return { problem: { code: 'sign_in_invalid' } };
      const finished = await oauth.finish({
        provider: providerOf(ask),
        parameters,
        browser: readBrowserSecret(fields.cookie),
        address: addressOf(ask.request),
      });
      if (finished.kind === 'refused') return { problem: finished.problem };
      const { redirect } = finished;
      const [content, cookies] =
        finished.kind === 'entered'
          ? [finished.opened.content, finished.opened.fields]
          : [{ user: finished.user }, []];
      if (redirect === null) return { problem: null, content };
      return { problem: null, elsewhere: redirect, elsewhereFields: cookies };
    },
    represent: (_ask, _standing, proposal) => represent(proposal),
  };
}

function represent(proposal: Finishing | undefined): Representation {
  if (proposal?.content === undefined) throw new Error('a sign-in ended without an answer');
  return {
    content: JSON.stringify(proposal.content),
    mediaType: 'application/json',
    validators: { tag: null, modifiedAt: null },
    cacheControl: 'no-store',
  };
}

function readStart(query: string | undefined, origins: ReadonlySet<string>): Asked {
  const parameters = readOnce(query);
  if (parameters === undefined) return invalid('each parameter may come once');
  let redirect: string | null = null;
  let link = false;
  for (const [name, value] of parameters) {
    if (name === 'redirect') {
      const target = redirectTarget(value, origins);
      if (target === undefined) return invalid('redirect must be a path, or a page of an allowed origin');
      redirect = target;
    } else if (name === 'link') {
      if (value !== 'true') return invalid('link must be true');
      link = true;
    } else if (name !== 'api_key') return invalid('only redirect and link are parameters here');
  }
  return { redirect, link };
}

function invalid(message: string): Asked {
  return { problem: { code: 'query_parameter_invalid', message } };
}

/** Undefined where a name comes twice (RFC 6749 §3.1) or the query cannot be decoded. */
function readOnce(query = ''): ReadonlyMap<string, string> | undefined {
  const pairs = parseQueryString(query);
  const parameters = new Map(pairs);
  return parameters.size === pairs?.length ? parameters : undefined;
}

/**
 * A key or a password stands for its owner without a session and may not open a further way in. A cookie comes along with whatever leads
 * the browser here, so that must be a page of ours: a navigation has no Origin, and `none` is also what a link in a mail gives.
 */
function mayLink({ request, known }: Ask, crossSite: OAuthResourcesOptions['crossSite']): boolean {
  if (known === undefined || known.session === null) return false;
  if (known.scheme !== 'session-cookie') return true;
  const { secFetchSite, origin } = request.fields;
  if (secFetchSite === 'none') return false;
  return (secFetchSite !== undefined || origin !== undefined) && !crossSite(request);
}

function linkOf({ known }: Ask): Start['link'] {
  if (known === undefined || known.session === null) throw new Error('a link was begun without a session');
  return { user: known.principal.id, session: known.session };
}

function providerOf({ captures }: Ask): string {
  return captures[0] ?? '';
}
