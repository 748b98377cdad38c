/** The preview of a file, fetched with the credential of the caller once its place comes into view. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiFile } from '../../src/client/index.ts';
import { previewOf } from '../files.ts';

type FilePreviewProps = {
  readonly file: ApiFile;
  /** Empty where the name of the file stands beside it. */
  readonly alt: string;
};

export function FilePreview({ file, alt }: FilePreviewProps): JSX.Element {
  const [url, setUrl] = useState<string | undefined>(undefined);
  const place = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    setUrl(undefined);
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      observer.disconnect();
      void previewOf(file).then(setUrl);
    });
    if (place.current !== null) observer.observe(place.current);
    return () => observer.disconnect();
  }, [file.id]);
  return (
    <span class="preview" ref={place}>
      {url === undefined ? null : <img src={url} alt={alt} />}
    </span>
  );
}
