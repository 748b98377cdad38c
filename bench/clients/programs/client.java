/*
 * Java's own HttpClient, with its defaults (plain) or its settings (set): a request a line in, its response a line out
 * (line-exchange.ts has the form).
 */
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

class Client {
  public static void main(String[] args) throws Exception {
    var builder = HttpClient.newBuilder();
    if (args[0].equals("set")) builder.followRedirects(HttpClient.Redirect.NORMAL);
    var client = builder.build();
    var in = new BufferedReader(new InputStreamReader(System.in));
    for (var line = in.readLine(); line != null; line = in.readLine()) {
      try {
        System.out.println(send(client, line.split("\t", -1)));
      } catch (Exception error) {
        System.out.println("error\t" + String.valueOf(error.getMessage()).replaceAll("\\s+", " "));
      }
    }
    System.exit(0);
  }

  static String send(HttpClient client, String[] parts) throws Exception {
    var content = Base64.getDecoder().decode(parts[2]);
    var publisher = content.length == 0 ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(content);
    var request = HttpRequest.newBuilder(URI.create(parts[1])).method(parts[0], publisher);
    var isStream = false;
    for (int index = 3; index < parts.length; index += 1) {
      var field = parts[index].split(": ", 2);
      request.header(field[0], field[1]);
      isStream |= field[1].equals("text/event-stream");
    }
    var answer = client.send(request.build(), HttpResponse.BodyHandlers.ofInputStream());
    var out = new StringBuilder(answer.statusCode() + "\t");
    try (var body = answer.body()) {
      out.append(Base64.getEncoder().encodeToString(isStream ? firstEvent(body) : body.readAllBytes()));
    }
    answer.headers().map().forEach((name, values) -> out.append("\t" + name + ": " + String.join(", ", values)));
    return out.toString();
  }

  static byte[] firstEvent(InputStream body) throws Exception {
    var text = new StringBuilder();
    while (text.indexOf("\ndata:") == -1) text.append((char) body.read());
    return text.toString().getBytes(StandardCharsets.ISO_8859_1);
  }
}
