/**
 * A certificate for localhost and its key, which is no secret: nobody but these tests trusts it. Made for a hundred years by
 * `openssl req -x509 -nodes -days 36500 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN=localhost
 * -addext subjectAltName=DNS:localhost,IP:127.0.0.1`, since a test machine need not have openssl.
 */

export const cert = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUdbV7My+EAV6YYvKpq+GnDbncaMcwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE1MjY0OVoYDzIxMjYxMDI4
MTUyNjQ5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQIcH83LSk7UH1D6igJPAWwr3AgO7lOEpCTTltaFP7Povau2GormQyK
dfis99S+n+7NEriSxPuiDNf+wkhlYH4yo28wbTAdBgNVHQ4EFgQUbZU7kBox/LGs
99SvDcRZIeNFHQowHwYDVR0jBBgwFoAUbZU7kBox/LGs99SvDcRZIeNFHQowDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhAIlF1kcujx2z8kDDa7pZ0xEHTTQYjnTE/dW4vgy4fmTPAiAU
kbW2S1vfOH6xunegVCZJNMsxPUG8F2fNenaPWg0N/g==
-----END CERTIFICATE-----
`;

export const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg3cinFi4NemvEEadZ
rqSrju8VjDmTqbpKFI3UofmtMh6hRANCAAQIcH83LSk7UH1D6igJPAWwr3AgO7lO
EpCTTltaFP7Povau2GormQyKdfis99S+n+7NEriSxPuiDNf+wkhlYH4y
-----END PRIVATE KEY-----
`;
