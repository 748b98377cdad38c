/** What the WebSockets of a server share: pings by one timer, frames that are made once. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createFleet, Frames } from '../../../src/realtime/websocket/frames.ts';

const limits = { realtimePingMs: 30_000, realtimeCompressionBytesMin: 1024 };

describe('pings', () => {
  it('are due once a round for each of 10,000 WebSockets, by one timer, a hundred at a time', (test) => {
    test.mock.timers.enable({ apis: ['setInterval'] });
    const timers = test.mock.method(globalThis, 'setInterval');
    const fleet = createFleet(limits);
    const beats = new Uint8Array(10_000);
    let atOnce = 0;
    let most = 0;
    for (let index = 0; index < beats.length; index += 1) {
      fleet.ping({
        beat: () => {
          beats[index] = (beats[index] ?? 0) + 1;
          atOnce += 1;
        },
      });
    }
    for (let ms = 0; ms < limits.realtimePingMs; ms += 300) {
      atOnce = 0;
      test.mock.timers.tick(300);
      most = Math.max(most, atOnce);
    }
    assert.equal(most, 100);
    assert.ok(beats.every((count) => count === 1));
    assert.equal(timers.mock.callCount(), 1);
  });

  it('reach a WebSocket that is alone after a whole round', (test) => {
    test.mock.timers.enable({ apis: ['setInterval'] });
    const fleet = createFleet(limits);
    let beats = 0;
    for (let turn = 0; turn < 2; turn += 1) {
      const leave = fleet.ping({ beat: () => (beats += 1) });
      test.mock.timers.tick(limits.realtimePingMs - 1);
      assert.equal(beats, turn);
      test.mock.timers.tick(1);
      assert.equal(beats, turn + 1);
      leave();
    }
  });

  it('end for one that has left, and the timer with the last', (test) => {
    test.mock.timers.enable({ apis: ['setInterval'] });
    const stopped = test.mock.method(globalThis, 'clearInterval');
    const fleet = createFleet(limits);
    let beats = 0;
    const leave = fleet.ping({ beat: () => (beats += 1) });
    const leaveLast = fleet.ping({ beat: () => undefined });
    leave();
    leave();
    assert.equal(stopped.mock.callCount(), 0);
    leaveLast();
    assert.equal(stopped.mock.callCount(), 1);
    test.mock.timers.tick(limits.realtimePingMs * 2);
    assert.equal(beats, 0);
  });

  it('may be asked for by one that leaves while others are pinged', (test) => {
    test.mock.timers.enable({ apis: ['setInterval'] });
    const fleet = createFleet({ ...limits, realtimePingMs: 10 });
    let beats = 0;
    const leaves = [1, 2, 3].map(() =>
      fleet.ping({
        beat: () => {
          beats += 1;
          for (const leave of leaves) leave();
        },
      }),
    );
    test.mock.timers.tick(100);
    assert.equal(beats, 1);
  });
});

describe('frames', () => {
  it('are the same octets for the same message in one turn, and are let go after it', async () => {
    const frames = new Frames(1024);
    const message = Buffer.from('x'.repeat(2000));
    const [plain, deflated] = [frames.ofText(message, undefined), frames.ofText(message, 15)];
    assert.equal(frames.ofText(message, undefined), plain);
    assert.equal(frames.ofText(message, 15), deflated);
    assert.notEqual(frames.ofText(message, 12), deflated);
    assert.notEqual(deflated, plain);
    await Promise.resolve();
    message.fill('y');
    assert.equal(frames.ofText(message, undefined).at(-1), 'y'.charCodeAt(0));
  });

  it('of one message are never taken for those of another', () => {
    const frames = new Frames(1024);
    for (const message of ['a', 'b', '', 'a', Buffer.from('c')]) {
      assert.equal(frames.ofText(message, undefined).subarray(2).toString(), message.toString());
    }
  });

  it('of a message that would hold everybody up are not compressed', () => {
    const frames = new Frames(1024);
    const long = Buffer.alloc(64 * 1024 + 1, 'x');
    assert.equal(frames.ofText(long, 15).length, long.length + 10);
  });
});
