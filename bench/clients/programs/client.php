<?php
// PHP's curl with its defaults (plain) or its settings (set), one handle: a request a line in, its response a line out (line-exchange.ts has the form).
declare(strict_types=1);

$mode = $argv[1];
$handle = curl_init();
while (($line = fgets(STDIN)) !== false) {
    [$method, $url, $content] = $parts = explode("\t", rtrim($line, "\n"));
    $body = '';
    $fields = [];
    $isStream = in_array('Accept: text/event-stream', $parts, true);
    curl_reset($handle);
    $options = [
        CURLOPT_URL => $url,
        CURLOPT_CUSTOMREQUEST => $method,
        CURLOPT_HTTPHEADER => array_slice($parts, 3),
        CURLOPT_HEADERFUNCTION => function ($_, string $field) use (&$fields): int {
            if (str_starts_with($field, 'HTTP/')) $fields = [];
            else if (trim($field) !== '') $fields[] = trim($field);
            return strlen($field);
        },
        CURLOPT_WRITEFUNCTION => function ($_, string $chunk) use (&$body, $isStream): int {
            $body .= $chunk;
            return $isStream && str_contains($body, "\ndata:") ? 0 : strlen($chunk);
        },
    ];
    if ($content !== '') $options[CURLOPT_POSTFIELDS] = base64_decode($content);
    if ($mode === 'set') $options += [CURLOPT_FOLLOWLOCATION => true, CURLOPT_ENCODING => ''];
    curl_setopt_array($handle, $options);
    $done = curl_exec($handle);
    $isSeen = $isStream && str_contains($body, "\ndata:");
    echo $done !== false || $isSeen
        ? implode("\t", [curl_getinfo($handle, CURLINFO_RESPONSE_CODE), base64_encode($body), ...$fields])
        : "error\t" . preg_replace('/\s+/', ' ', curl_error($handle)), "\n";
}
