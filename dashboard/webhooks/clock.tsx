/** Times beside the present: how long ago, how long until, and a clock that counts down. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { zonedText } from '../presentation.ts';

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const;

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' });

export function Ago({ time }: { readonly time: string }): JSX.Element {
  const now = useNow(10_000);
  return (
    <time dateTime={time} title={zonedText(time)}>
      {agoText(Date.parse(time) - now)}
    </time>
  );
}

function agoText(ms: number): string {
  const [unit, size] = units.find(([, each]) => Math.abs(ms) >= each) ?? ['second', 1000];
  return Math.abs(ms) < 1000 ? 'just now' : relative.format(Math.trunc(ms / size), unit);
}

/** Counts down to the time; its text changes each second, which a screen reader is not told. */
export function Countdown({ until, over }: { readonly until: string; readonly over: string }): JSX.Element {
  const ms = Date.parse(until) - useNow(1000);
  return (
    <time dateTime={until} title={zonedText(until)} class="countdown">
      {ms <= 0 ? over : durationText(ms)}
    </time>
  );
}

function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  const parts = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  const [days = 0, hours = 0, minutes = 0] = parts;
  const two = (part: number) => String(part).padStart(2, '0');
  const clock = `${two(hours)}:${two(minutes)}:${two(seconds % 60)}`;
  return days === 0 ? clock : `${days} d ${clock}`;
}

function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
