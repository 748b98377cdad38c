/** Parts of an event's document, cut out without parsing it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventDocument } from '../../../src/model/event.ts';
import { isExpunged, objectOf } from '../../../src/webhooks/sending/sent-event.ts';

test('cuts the resource out of an event, whatever stands in it and before it', () => {
  const objects = [
    '{}',
    '{"id":"1"}',
    '{"a":",\\"data\\":{\\"object\\":{}}}"}',
    '{"x":{},"data":{"object":{"y":[1]}}}',
    'null',
  ];
  const types = ['a.b', ',', '",', '"data":{"object":', ',"data":{"object":{}}}', '\\'];
  for (const object of objects) {
    for (const type of types) {
      const doc = eventDocument('evt_1', type, 0, object);
      assert.equal(objectOf(doc), object, doc);
      assert.deepEqual(JSON.parse(doc).data.object, JSON.parse(object));
      const tenant = JSON.stringify(type);
      assert.equal(
        objectOf(
          doc.replace(',"data":{"object":' + object, () => `,"tenant":${tenant},"data":{"object":${object}`),
        ),
        object,
      );
    }
  }
  for (const none of ['', '{}', '{"id":"evt_1","expunged":true}', '{"data":{"object":{}}}'])
    assert.equal(objectOf(none), undefined);
});

test('an event is expunged by its own member, not by one of the resource', () => {
  assert.equal(isExpunged('{"id":"evt_1","expunged":true}'), true);
  assert.equal(isExpunged(eventDocument('evt_1', 'a.b', 0, '{"expunged":true}')), false);
});
