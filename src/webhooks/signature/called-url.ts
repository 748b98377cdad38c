/**
 * The URL that a sender called, as it may have signed it. Taken apart as text, since what was signed are its characters and not what a
 * parser of URLs makes of them.
 */

/**
 * As it is, and with the port of its scheme put in or its port left out: senders that sign the URL (Twilio) do either, and which one is
 * not to be seen from what arrives.
 */
export function signedUrls(url: string): readonly string[] {
  const from = url.indexOf('://') + 3;
  if (from < 3) return [url];
  const end = endOfAuthority(url, from);
  const authority = url.slice(from, end);
  const colon = authority.indexOf(':', authority.lastIndexOf(']') + 1);
  if (colon >= 0) return [url, url.slice(0, from + colon) + url.slice(end)];
  const port = url.startsWith('https:') ? ':443' : ':80';
  return [url, url.slice(0, end) + port + url.slice(end)];
}

/** The value of a parameter of the query, as it is written; undefined where it is not there, or twice. */
export function queryParameter(url: string, name: string): string | undefined {
  const query = url.indexOf('?');
  if (query < 0) return undefined;
  const hash = url.indexOf('#', query);
  const found = url
    .slice(query + 1, hash < 0 ? url.length : hash)
    .split('&')
    .filter((pair) => pair.startsWith(`${name}=`));
  return found.length === 1 ? found[0]?.slice(name.length + 1) : undefined;
}

function endOfAuthority(url: string, from: number): number {
  for (let at = from; at < url.length; at += 1) {
    const character = url.charAt(at);
    if (character === '/' || character === '?' || character === '#') return at;
  }
  return url.length;
}
