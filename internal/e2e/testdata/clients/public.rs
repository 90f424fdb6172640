// Says whether Rust's standard library takes an address for a public one.
#![feature(ip)]
fn main() {
    let address: std::net::Ipv4Addr = std::env::args().nth(1).unwrap().parse().unwrap();
    println!("{}", address.is_global());
}
