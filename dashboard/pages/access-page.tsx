/** Sign-in and limits: providers of sign-ins, the limits in force for this caller, and those of the settings. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { PlainTable } from '../components/plain-table.tsx';
import { base, pathEnum } from '../description.ts';
import { prefix, type Reply, send } from '../send.ts';
import { isAdministrator } from '../session.ts';
import { useItems } from '../use-items.ts';

export function AccessPage(): JSX.Element {
  return (
    <section aria-labelledby="access-title">
      <h1 id="access-title">Sign-in and limits</h1>
      <Providers />
      <OwnLimits />
      {isAdministrator() ? <LimitSettings /> : null}
    </section>
  );
}

function Providers(): JSX.Element {
  const path = `${base.value}/auth/oauth/{provider}`;
  const providers = pathEnum(path);
  return (
    <section aria-labelledby="providers-title">
      <h2 id="providers-title">OpenID providers</h2>
      {providers.length === 0 ? (
        <p class="quiet">
          None is configured. <code>COMITY_OAUTH_NAME_ISSUER</code>, <code>_CLIENT_ID</code> and{' '}
          <code>_CLIENT_SECRET</code> add one.
        </p>
      ) : (
        <PlainTable
          label="Table of providers"
          rows={providers.map((name) => ({
            name,
            callback: `${location.origin}${prefix}${path.replace('{provider}', name)}/callback`,
          }))}
        />
      )}
    </section>
  );
}

/** The rate limits that a response tells: `"reads";q=6000;w=60` (RateLimit-Policy). */
function OwnLimits(): JSX.Element {
  const [reply, setReply] = useState<Reply | undefined>(undefined);
  useEffect(() => void send('GET', `${base.value}/auth/me`).then(setReply), []);
  const policies = (reply?.headers.get('RateLimit-Policy') ?? '').split(',').flatMap((text) => {
    const [, name, quota, seconds] = /"([^"]+)";q=(\d+);w=(\d+)/.exec(text) ?? [];
    return name === undefined ? [] : [{ limit: name, requests: Number(quota), seconds: Number(seconds) }];
  });
  const left = reply?.headers.get('X-RateLimit-Remaining');
  return (
    <section aria-labelledby="limits-title">
      <h2 id="limits-title">Your limits</h2>
      {policies.length === 0 ? (
        <p class="quiet">No limit applies to your credential here.</p>
      ) : (
        <>
          <PlainTable label="Table of your limits" rows={policies} />
          <p class="quiet">{`${left ?? '–'} requests are left in this window.`}</p>
        </>
      )}
    </section>
  );
}

const limitNames = /^(rateLimit|login|connections|tunnelsPer|sessionsPer|keyOverlap|realtime.*Max)/;

function LimitSettings(): JSX.Element | null {
  const items = useItems(`${base.value}/meta/settings`, 60_000);
  if (items === undefined) return null;
  const rows = items
    .filter(({ name }) => limitNames.test(String(name)))
    .map(({ name, value, unit, source }) => ({ name, value, unit, source }));
  return (
    <section aria-labelledby="settings-of-limits">
      <h2 id="settings-of-limits">Limits of the server</h2>
      <PlainTable label="Table of the limits of the server" rows={rows} />
    </section>
  );
}
