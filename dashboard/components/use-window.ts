/**
 * Which rows of a long table are in view. All rows have one height, so the rest is space above and below: a table of 1,000 rows has no more
 * elements than one of 60, and scrolls as smoothly.
 */
import { useEffect, useRef, useState } from 'preact/hooks';

/** Tables up to this length show all of their rows, for the search of the browser. */
const rowsWhole = 120;
const rowsBeyond = 12;
/** Until a row was measured. */
const rowPixelsDefault = 34;

export type Window = { readonly first: number; readonly end: number; readonly rowPixels: number };

export function useWindow(count: number) {
  const scroller = useRef<HTMLElement>(null);
  const [view, setView] = useState({ top: 0, height: 800, rowPixels: rowPixelsDefault });
  useEffect(() => {
    const element = scroller.current;
    if (element === null || count <= rowsWhole) return undefined;
    let frame = 0;
    const measure = () => {
      frame = 0;
      const row = element.querySelector('tbody tr:not(.space)');
      const rowPixels = row?.getBoundingClientRect().height || rowPixelsDefault;
      setView({ top: element.scrollTop, height: element.clientHeight, rowPixels });
    };
    const later = () => {
      if (frame === 0) frame = requestAnimationFrame(measure);
    };
    measure();
    element.addEventListener('scroll', later, { passive: true });
    addEventListener('resize', later);
    return () => {
      cancelAnimationFrame(frame);
      element.removeEventListener('scroll', later);
      removeEventListener('resize', later);
    };
  }, [count]);
  const { top, height, rowPixels } = view;
  const first = count <= rowsWhole ? 0 : Math.max(0, Math.floor(top / rowPixels) - rowsBeyond);
  const end =
    count <= rowsWhole ? count : Math.min(count, Math.ceil((top + height) / rowPixels) + rowsBeyond);
  return { scroller, window: { first: Math.min(first, end), end, rowPixels } satisfies Window };
}
