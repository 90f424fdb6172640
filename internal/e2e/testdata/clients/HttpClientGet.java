import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

/** Gets a URL with java.net.http, as programs since Java 11 do. */
public class HttpClientGet {
    public static void main(String[] args) throws Exception {
        var client = HttpClient.newBuilder().proxy(ProxySelector.getDefault()).build();
        var response = client.send(HttpRequest.newBuilder(URI.create(args[0])).build(), BodyHandlers.ofString());
        System.out.println("status " + response.statusCode());
        response.headers().map().forEach((name, values) -> values.forEach(v -> System.out.println(name + ": " + v)));
        System.out.println(response.body());
    }
}
