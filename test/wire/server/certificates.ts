/**
 * Two self-signed certificates for localhost with their keys, valid for a hundred years and good for nothing else; and one of them as the
 * listener takes it.
 */
import type { Certificate, CertificatePair } from '../../../src/server/certificate.ts';

export type PemPair = { readonly cert: string; readonly key: string };

export const firstPair: PemPair = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBozCCAUmgAwIBAgIUIi2MCK3puuvgu8EFB3AMyEiq8sgwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNdGVzdDEuaW52YWxpZDAgFw0yNjExMjIwMDI2MjVaGA8yMTI2
MTAyOTAwMjYyNVowGDEWMBQGA1UEAwwNdGVzdDEuaW52YWxpZDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABFBVeGULdHDWQCPiTp193PEjo3Qro2N29pZp4Db+VF6y
1kTgJnr8U4T/zOgYqyrh3icwffRChObr9YnvGuREpT+jbzBtMB0GA1UdDgQWBBRF
bpCkk+PfEqTVmEDPhQvJoeIQLjAfBgNVHSMEGDAWgBRFbpCkk+PfEqTVmEDPhQvJ
oeIQLjAPBgNVHRMBAf8EBTADAQH/MBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAA
ATAKBggqhkjOPQQDAgNIADBFAiAvjlfspcbuYm5F2M0SvPOrRTy15bVC5536pWzh
Baqz8gIhAILAJ+m1MNuxwnTgqneKIjAYQfM8xAgDwppJPaDAnTvh
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgenVQA/vAIzp/Ye5a
/6y7K6cAEhdL765Ns/0Qh8r9k56hRANCAARQVXhlC3Rw1kAj4k6dfdzxI6N0K6Nj
dvaWaeA2/lRestZE4CZ6/FOE/8zoGKsq4d4nMH30QoTm6/WJ7xrkRKU/
-----END PRIVATE KEY-----
`,
};

export const secondPair: PemPair = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBpDCCAUmgAwIBAgIUR8u0MNGLpZ423iw0iQXwd/9htekwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNdGVzdDIuaW52YWxpZDAgFw0yNjExMjIwMDI2MjVaGA8yMTI2
MTAyOTAwMjYyNVowGDEWMBQGA1UEAwwNdGVzdDIuaW52YWxpZDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABCb8OeYGM7BSPbpqJE90VMEJKS1yNLBQ4mMIVM2Febxo
8vIyHdC3rds/A88ooxp2lMopV/l5YtfA8a8eh2SZeOajbzBtMB0GA1UdDgQWBBTr
X+3Y6QJpjUq0bV7lMUQhNMnzOjAfBgNVHSMEGDAWgBTrX+3Y6QJpjUq0bV7lMUQh
NMnzOjAPBgNVHRMBAf8EBTADAQH/MBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAA
ATAKBggqhkjOPQQDAgNJADBGAiEA9IAbT9kWdYtbQl4S+A54zcriW/6iYXKC90bH
WAbYTYgCIQDY42fJHKThnNPSaeDQGzCuzamki+dtsoGgpgNHR1NQbw==
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgKp8zsCGFuoUhZuBZ
EvGWH8bUITXiK7n9B5H2xiz8txOhRANCAAQm/DnmBjOwUj26aiRPdFTBCSktcjSw
UOJjCFTNhXm8aPLyMh3Qt63bPwPPKKMadpTKKVf5eWLXwPGvHodkmXjm
-----END PRIVATE KEY-----
`,
};

export function toBuffers({ cert, key }: PemPair): CertificatePair {
  return { cert: Buffer.from(cert), key: Buffer.from(key) };
}

/** One that never changes. */
export function fixedCertificate(): Certificate {
  return { pair: () => toBuffers(firstPair), onChange: () => undefined, close: () => undefined };
}
