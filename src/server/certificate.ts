/**
 * The certificate of the TLS port: two PEM files, read again when they change (§4.13). Every two seconds Comity
 * compares what both paths lead to. This detects files that are renamed over, and symbolic links (certbot) and folders
 * (Kubernetes) that are swapped; a watch on a file or on its folder misses at least one of these.
 *
 * A pair that does not match may be half written: it is read again at every check, and reported if it does not match at
 * the second. Until then the previous pair serves. Open connections keep theirs.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { ConfigurationError } from '../config/inspection.ts';
import type { Observe } from '../observe/observation.ts';

type CertificatePaths = { readonly certificate: string; readonly key: string };

export type CertificatePair = { readonly cert: Buffer; readonly key: Buffer };

export type Certificate = {
  readonly pair: () => CertificatePair;
  readonly onChange: (listener: (pair: CertificatePair) => void) => void;
  readonly close: () => void;
};

const certificateLookMs = 2_000;
/** Checks at which a changed pair fails before it is reported. */
const failuresBeforeReport = 2;

/** @throws {ConfigurationError} if a file is unreadable or no PEM of its kind, or the two do not belong together */
export async function openCertificate(
  paths: CertificatePaths,
  observe: Observe,
  lookMs = certificateLookMs,
): Promise<Certificate> {
  const listeners: ((pair: CertificatePair) => void)[] = [];
  let seen = await signatureOf(paths);
  let pair = await readPair(paths);
  let failures = 0;
  let looking = false;
  report(observe, pair);
  const look = async (): Promise<void> => {
    const signature = await signatureOf(paths);
    if (signature !== seen) failures = 0;
    else if (failures === 0) return;
    // Taken before the files are read: later writes differ from it at the next check.
    seen = signature;
    try {
      const read = await readPair(paths);
      failures = 0;
      if (read.cert.equals(pair.cert) && read.key.equals(pair.key)) return;
      pair = read;
      for (const listener of listeners) listener(read);
      report(observe, read);
    } catch (error) {
      failures += 1;
      if (failures === failuresBeforeReport) observe({ kind: 'certificate-failed', error });
    }
  };
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    void look().finally(() => {
      looking = false;
    });
  }, lookMs).unref();
  return {
    pair: () => pair,
    onChange: (listener) => listeners.push(listener),
    close: () => clearInterval(timer),
  };
}

async function readPair(paths: CertificatePaths): Promise<CertificatePair> {
  const cert = await read('COMITY_TLS_CERT', paths.certificate);
  const key = await read('COMITY_TLS_KEY', paths.key);
  const certificate = parse('COMITY_TLS_CERT', paths.certificate, 'a certificate in PEM', () => {
    return new X509Certificate(cert);
  });
  const privateKey = parse('COMITY_TLS_KEY', paths.key, 'a private key in PEM without a passphrase', () => {
    return createPrivateKey(key);
  });
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new ConfigurationError([
      `the key of COMITY_TLS_KEY (${paths.key}) does not belong to the certificate of COMITY_TLS_CERT (${paths.certificate})`,
    ]);
  }
  // OpenSSL reads the rest of the chain, and refuses keys that are too weak.
  parse('COMITY_TLS_CERT', paths.certificate, 'a certificate that TLS can use', () =>
    createSecureContext({ cert, key }),
  );
  return { cert, key };
}

async function read(setting: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    throw new ConfigurationError([`${setting}: ${path} cannot be read: ${messageOf(cause)}`]);
  }
}

function parse<Value>(setting: string, path: string, what: string, make: () => Value): Value {
  try {
    return make();
  } catch (cause) {
    throw new ConfigurationError([`${setting}: ${path} is not ${what}: ${messageOf(cause)}`]);
  }
}

/** Differs if either path leads to another file or to other content. */
async function signatureOf(paths: CertificatePaths): Promise<string> {
  const parts = await Promise.all(
    [paths.certificate, paths.key].map(async (path) => {
      const found = await stat(path, { bigint: true }).catch(() => undefined);
      return found === undefined ? '' : `${found.dev}:${found.ino}:${found.size}:${found.ctimeNs}`;
    }),
  );
  return parts.join(' ');
}

function report(observe: Observe, { cert }: CertificatePair): void {
  const { subject, validToDate } = new X509Certificate(cert);
  const notAfter = validToDate.toISOString();
  observe({ kind: 'certificate-loaded', subject: subject.replaceAll('\n', ', '), notAfter });
}

/** The end of the certificate in a PEM file, as an ISO 8601 time; undefined where there is none. */
export async function certificateEnd(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return new X509Certificate(await readFile(path)).validToDate.toISOString();
  } catch {
    // `openCertificate` reports files that are replaced by what is no certificate.
    return undefined;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
