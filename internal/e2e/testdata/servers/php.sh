# A program that serves files by the path that PHP's parse_url finds, as many do.
cat >{{.Dir}}/router.php <<'END'
<?php
$path = rawurldecode(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH) ?: '/');
$file = str_contains($path, "\0") ? false : realpath('{{.Site}}' . $path);
if ($file === false || is_dir($file)) {
	http_response_code(404);
} else {
	readfile($file);
}
END
# A program whose answer depends on the query.
sed 's|^<?php|&\nif (($_GET["sort"] ?? "") === "a,b" \|\| ($_GET["id"] ?? "") === "(1)") exit("disallowed: the query");|' {{.Dir}}/router.php >{{.Dir}}/query.php
php -S {{port "php/query"}} {{.Dir}}/query.php &
query=$!
php -S {{port "php/parse_url"}} {{.Dir}}/router.php &
trap "kill $query $!" TERM
wait
