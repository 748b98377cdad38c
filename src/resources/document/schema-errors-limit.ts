/**
 * TypeBox stops listing errors at a number that is a setting of the whole process. This sets it for one
 * synchronous call and puts it back, so that nobody else who uses TypeBox in this process sees a change.
 */
import { Settings } from 'typebox/system';

/** Runs `list` with TypeBox listing up to `errorsMax` errors. */
export function withErrorsMax<T>(errorsMax: number, list: () => T): T {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: errorsMax });
  try {
    return list();
  } finally {
    Settings.Set({ maxErrors });
  }
}
