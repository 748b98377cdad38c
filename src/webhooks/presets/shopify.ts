/**
 * Shopify: the HMAC of the body in base64, keyed with the client secret of the app.
 *
 * `X-Shopify-Webhook-Id` tells deliveries. `X-Shopify-Event-Id` is that of what happened, which is told once for each topic that it belongs
 * to (`orders/create` and `orders/paid`): by it, only the first of them would be taken. It stands in where the other is missing, and is kept.
 * Subscriptions of the newer kind have the same fields without `X-`, which a declaration can say.
 */
import type { SenderRule } from './sender-rule.ts';

export const shopify: SenderRule = {
  signature: {
    kind: 'hmac',
    header: 'x-shopify-hmac-sha256',
    hash: 'sha256',
    encoding: 'base64',
    prefix: '',
    separator: null,
    signed: '{body}',
    key: 'text',
    toleranceSeconds: 0,
  },
  dedupe: [{ header: 'x-shopify-webhook-id' }, { header: 'x-shopify-event-id' }],
  type: [[{ header: 'x-shopify-topic' }]],
  keep: [
    'x-shopify-topic',
    'x-shopify-webhook-id',
    'x-shopify-event-id',
    'x-shopify-shop-domain',
    'x-shopify-api-version',
    'x-shopify-triggered-at',
    'x-shopify-name',
  ],
};
