/** What stands between documents that travel as one text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { separatorOf } from '../../../src/store/postgres/commit/commit-table.ts';

test('finds a text that no document holds, however they try', () => {
  assert.equal(separatorOf(['{}', '{"a":"\\u001f"}']), '\u001f');
  for (const docs of [['\u001f'], ['a', '\u001f1\u001e'], ['\u001f1\u001e\u001f2\u001e', '\u001f1']]) {
    const separator = separatorOf(docs);
    assert.deepEqual(docs.join(separator).split(separator), docs);
  }
});
