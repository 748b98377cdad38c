#!/usr/bin/env bash
# Amounts with two decimals against the JSON Schema keyword `multipleOf: 0.01`.
#
# Guess: validators accept 0.29 and 1234567.89, which are multiples of 0.01, and agree with each other.
# Seen (ajv 8.20.0, typebox 1.4.3, @cfworker/json-schema 4.1.6, zod 4.6.7): of 10,000 amounts with two decimals, spread over each range
# below, ajv refuses 12 to 15 %, typebox none up to a million and 99 % up to ten thousand million, the other two none.
#
# Needs node, npm and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund ajv@8.20.0 typebox@1.4.3 @cfworker/json-schema@4.1.6 zod@4.6.7
cat >look.mjs <<'JS'
import { Validator } from '@cfworker/json-schema';
import Ajv from 'ajv/dist/2020.js';
import { Compile } from 'typebox/compile';
import { z } from 'zod';

const schema = { type: 'number', multipleOf: 0.01 };
const typebox = Compile(schema);
const ajv = new Ajv.default().compile(schema);
const cfworker = new Validator(schema, '2020-12');
const zod = z.number().multipleOf(0.01);
const accepts = {
  ajv: (value) => ajv(value),
  typebox: (value) => typebox.Check(value),
  cfworker: (value) => cfworker.validate(value).valid,
  zod: (value) => zod.safeParse(value).success,
};
for (const value of [0.29, 19.99, 1234567.89, 99999999.99]) {
  const found = Object.entries(accepts).map(([name, check]) => `${name} ${check(value) ? 'takes' : 'refuses'} it`);
  console.log(`${value}: ${found.join(', ')}`);
}
const count = 10_000;
for (const most of [100, 1e6, 1e8, 1e10]) {
  const cents = Array.from({ length: count }, (_, at) => Math.floor((most * at) / count) * 100 + ((37 * at) % 100));
  // The text of an amount is read as JSON does it.
  const amounts = cents.map((n) => Number(`${Math.floor(n / 100)}.${String(n % 100).padStart(2, '0')}`));
  const refused = Object.entries(accepts).map(([name, check]) => `${name} ${amounts.filter((value) => !check(value)).length}`);
  console.log(`of ${count} up to ${most}, refused: ${refused.join(', ')}`);
}
JS
node look.mjs >seen
cat >expected <<'TEXT'
0.29: ajv refuses it, typebox takes it, cfworker takes it, zod takes it
19.99: ajv refuses it, typebox takes it, cfworker takes it, zod takes it
1234567.89: ajv refuses it, typebox refuses it, cfworker takes it, zod takes it
99999999.99: ajv takes it, typebox refuses it, cfworker takes it, zod takes it
of 10000 up to 100, refused: ajv 1363, typebox 0, cfworker 0, zod 0
of 10000 up to 1000000, refused: ajv 1158, typebox 0, cfworker 0, zod 0
of 10000 up to 100000000, refused: ajv 1436, typebox 9235, cfworker 0, zod 0
of 10000 up to 10000000000, refused: ajv 1473, typebox 9890, cfworker 0, zod 0
TEXT
cat seen
diff expected seen
