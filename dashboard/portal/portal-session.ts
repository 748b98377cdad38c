/**
 * The session of the portal. The token of the link is in the fragment of the address; it leaves the address, and so the history, before it
 * is exchanged. The token of the session is kept in memory, and in `sessionStorage` for a reload where the browser permits that: in a frame
 * of another site it may refuse.
 */

export type Session = { readonly token: string; readonly tenant: string; readonly expiresAt: string };

const storedName = 'comity-portal';
const linkForm = /^#(pl_[A-Za-z0-9_-]{43})$/;

/** @returns undefined without a link or a session of this tab @throws Error if the link is refused */
export async function openSession(base: string): Promise<Session | undefined> {
  const link = linkForm.exec(location.hash)?.[1];
  if (link === undefined) return storedSession();
  history.replaceState(null, '', `${location.pathname}${location.search}#/`);
  dispatchEvent(new HashChangeEvent('hashchange'));
  const response = await fetch(`${base}/portal-sessions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
    body: JSON.stringify({ link }),
    credentials: 'omit',
    cache: 'no-store',
  });
  if (!response.ok) throw new Error(`the link was refused: ${response.status}`);
  const session: Session = await response.json();
  try {
    sessionStorage.setItem(storedName, JSON.stringify(session));
  } catch {
    // The browser keeps no data here: a reload then needs a new link.
  }
  return session;
}

function storedSession(): Session | undefined {
  try {
    const text = sessionStorage.getItem(storedName);
    const session = text === null ? undefined : (JSON.parse(text) as Session);
    return session !== undefined && Date.parse(session.expiresAt) > Date.now() ? session : undefined;
  } catch {
    return undefined; // As above.
  }
}

export function forgetSession(): void {
  try {
    sessionStorage.removeItem(storedName);
  } catch {
    // As above.
  }
}
