# A gRPC service and its client, with bytes for messages: "serve CERT KEY" prints its port, "call HOST:PORT" what it received.
import sys
from concurrent import futures

import grpc


def echo(request, context):
    context.set_trailing_metadata((("x-sum", "1"),))
    return request


def repeat(request, context):
    for _ in range(3):
        yield request


def refuse(request, context):
    context.abort(grpc.StatusCode.PERMISSION_DENIED, "not today")


METHODS = {
    "Unary": grpc.unary_unary_rpc_method_handler(echo),
    "Out": grpc.unary_stream_rpc_method_handler(repeat),
    "In": grpc.stream_unary_rpc_method_handler(lambda requests, context: b"".join(requests)),
    "Both": grpc.stream_stream_rpc_method_handler(lambda requests, context: requests),
    "Error": grpc.unary_unary_rpc_method_handler(refuse),
}


def serve(cert, key):
    server = grpc.server(futures.ThreadPoolExecutor())
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", METHODS),))
    with open(key, "rb") as k, open(cert, "rb") as c:
        credentials = grpc.ssl_server_credentials(((k.read(), c.read()),))
    print(server.add_secure_port("127.0.0.1:0", credentials), flush=True)
    server.start()
    server.wait_for_termination()


def call(target):
    with grpc.secure_channel(target, grpc.ssl_channel_credentials()) as channel:
        answer, ended = channel.unary_unary("/test.Echo/Unary").with_call(b"a", timeout=30)
        print("unary", answer.decode(), dict(ended.trailing_metadata())["x-sum"])
        print("out", *(m.decode() for m in channel.unary_stream("/test.Echo/Out")(b"a", timeout=30)))
        print("in", channel.stream_unary("/test.Echo/In")(iter([b"a", b"b"]), timeout=30).decode())
        print("both", *(m.decode() for m in channel.stream_stream("/test.Echo/Both")(iter([b"a", b"b"]), timeout=30)))
        for _ in range(8):
            try:
                channel.unary_unary("/test.Echo/Error")(b"a", timeout=30)
            except grpc.RpcError as e:
                print("error", e.code().value[0], e.details())


{"serve": serve, "call": call}[sys.argv[1]](*sys.argv[2:])
