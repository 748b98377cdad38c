/** Values of examples in the OpenAPI document. */
export const exampleFactorCode = '492039';
export const exampleChallenge = 'jH2c0Zr1mYw8n5QbR7sVtT4uXk9pLaGdEfIoCvBxNyM6';
