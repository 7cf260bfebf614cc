//! A plan file as a tree of elements with their properties.
//!
//! In a plan, a `<hashTree>` holds elements, and the `<hashTree>` behind an element holds that
//! element's children. Disabled elements are left out here, with all that is below them.

use roxmltree::{Document, Node, ParsingOptions};

use super::error::PlanError;

/// Largest plan that is read; those of the guide have 20 KiB.
pub(super) const BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most XML nodes of a plan.
const NODES_MAX: u32 = 1_000_000;
/// Deepest nesting of elements.
const DEPTH_MAX: usize = 200;

/// An enabled element of a plan.
#[derive(Debug, Default)]
pub(super) struct Element {
    /// Its class, such as `ThreadGroup` or `net.xmeter.samplers.PubSampler`.
    pub(super) class: String,
    /// The name that reports show.
    pub(super) name: String,
    /// Line in the file.
    pub(super) line: u32,
    /// Names and texts of its properties, those of nested ones included.
    properties: Vec<(String, String)>,
    /// Variables that it defines, for `Arguments`.
    pub(super) arguments: Vec<Argument>,
    /// Its children.
    pub(super) children: Vec<Self>,
}

/// A user-defined variable.
#[derive(Debug, Default)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) description: String,
}

impl Element {
    /// The text of a property; empty when it is not there.
    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }

    /// The text of a property.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.properties.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, text)| text.as_str())
    }

    /// Is a property `true`?
    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(name).trim().eq_ignore_ascii_case("true")
    }
}

/// Reads a plan; the element returned stands for the whole file.
pub(super) fn parse(text: &str) -> Result<Element, PlanError> {
    if text.len() > BYTES_MAX {
        return Err(PlanError::new(format!(
            "the plan has {} bytes, more than the limit of {BYTES_MAX}",
            text.len()
        )));
    }
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        PlanError::new(format!("this is not XML: {error}")).on_line(error.pos().row)
    })?;
    let root = document.root_element();
    if root.tag_name().name() != "jmeterTestPlan" {
        return Err(PlanError::new(format!(
            "not a JMeter plan: the root element is <{}>, not <jmeterTestPlan>",
            root.tag_name().name()
        ))
        .on_line(line(&root)));
    }
    let mut plan = Element { class: "jmeterTestPlan".to_owned(), ..Element::default() };
    for tree in root.children().filter(|node| node.has_tag_name("hashTree")) {
        plan.children.extend(children(&tree, 0)?);
    }
    match plan.children.is_empty() {
        true => Err(PlanError::new("the plan is empty")),
        false => Ok(plan),
    }
}

fn line(node: &Node<'_, '_>) -> u32 {
    node.document().text_pos_at(node.range().start).row
}

fn children(tree: &Node<'_, '_>, depth: usize) -> Result<Vec<Element>, PlanError> {
    if depth > DEPTH_MAX {
        return Err(PlanError::new(format!("elements are nested more than {DEPTH_MAX} deep"))
            .on_line(line(tree)));
    }
    let mut elements = Vec::new();
    let mut nodes = tree.children().filter(Node::is_element).peekable();
    while let Some(node) = nodes.next() {
        if node.has_tag_name("hashTree") {
            return Err(
                PlanError::new("this <hashTree> belongs to no element").on_line(line(&node))
            );
        }
        let below = nodes.next_if(|next| next.has_tag_name("hashTree"));
        if node.attribute("enabled").is_some_and(|enabled| enabled != "true") {
            continue;
        }
        let mut element = element(&node);
        if let Some(below) = below {
            element.children = children(&below, depth + 1)?;
        }
        elements.push(element);
    }
    Ok(elements)
}

fn element(node: &Node<'_, '_>) -> Element {
    let class = node.attribute("testclass").unwrap_or_else(|| node.tag_name().name());
    let mut element = Element {
        class: class.to_owned(),
        name: node.attribute("testname").unwrap_or(class).to_owned(),
        line: line(node),
        ..Element::default()
    };
    for property in node.descendants().skip(1).filter(Node::is_element) {
        let Some(name) = property.attribute("name") else { continue };
        match property.tag_name().name() {
            "elementProp" if property.attribute("elementType") == Some("Argument") => {
                element.arguments.push(argument(&property));
            }
            "elementProp" | "collectionProp" => {}
            // Properties of an argument are read with it.
            _ if name.starts_with("Argument.") => {}
            _ => element.properties.push((name.to_owned(), text(&property))),
        }
    }
    element
}

fn argument(node: &Node<'_, '_>) -> Argument {
    let property = |wanted: &str| {
        let mut found = node.children().filter(|child| child.attribute("name") == Some(wanted));
        found.next().map(|child| text(&child))
    };
    Argument {
        name: property("Argument.name")
            .or_else(|| node.attribute("name").map(str::to_owned))
            .unwrap_or_default(),
        value: property("Argument.value").unwrap_or_default(),
        description: property("Argument.desc").unwrap_or_default(),
    }
}

/// All text of a node.
fn text(node: &Node<'_, '_>) -> String {
    node.children().filter_map(|child| child.text()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(inner: &str) -> Result<Element, PlanError> {
        parse(&format!("<jmeterTestPlan>\n<hashTree>\n{inner}</hashTree></jmeterTestPlan>"))
    }

    #[test]
    fn a_tree_behind_an_element_is_below_it() {
        let plan = plan(
            "<A testclass='TestPlan' testname='P' enabled='true'>\
             <stringProp name='x'>1&amp;2</stringProp>\
             <elementProp name='m'><boolProp name='y'>true</boolProp></elementProp></A>\n\
             <hashTree><B/><hashTree/><C/></hashTree>",
        )
        .expect("parses");
        let [top] = &plan.children[..] else { panic!("{plan:?}") };
        assert_eq!((top.class.as_str(), top.name.as_str(), top.line), ("TestPlan", "P", 3));
        assert_eq!(top.text("x"), "1&2");
        assert!(top.flag("y") && !top.flag("z"));
        let classes: Vec<_> = top.children.iter().map(|child| child.class.as_str()).collect();
        assert_eq!(classes, ["B", "C"]);
    }

    #[test]
    fn disabled_elements_are_left_out_with_what_is_below() {
        let plan = plan("<A enabled='false'/><hashTree><B/></hashTree><C/>").expect("parses");
        assert_eq!(plan.children.len(), 1);
        assert_eq!(plan.children[0].class, "C");
    }

    #[test]
    fn variables_have_names_values_and_descriptions() {
        let plan = plan(
            "<Arguments><collectionProp name='Arguments.arguments'>\
             <elementProp name='qos' elementType='Argument'>\
             <stringProp name='Argument.name'>qos</stringProp>\
             <stringProp name='Argument.value'>1</stringProp>\
             <stringProp name='Argument.desc'>d</stringProp></elementProp>\
             </collectionProp></Arguments>",
        )
        .expect("parses");
        let [argument] = &plan.children[0].arguments[..] else { panic!("{plan:?}") };
        assert_eq!((argument.name.as_str(), argument.value.as_str()), ("qos", "1"));
        assert_eq!(argument.description, "d");
    }

    #[test]
    fn says_what_is_no_plan_and_where() {
        let sentence = |text: &str| parse(text).expect_err("is wrong").to_string();
        assert!(sentence("<jmeterTestPlan>\n<a>\n</b>").starts_with("line 3: this is not XML"));
        assert!(sentence("<html/>").contains("<html>"));
        assert!(sentence("<jmeterTestPlan/>").contains("empty"));
        let deep = format!("{}{}", "<A/><hashTree>".repeat(250), "</hashTree>".repeat(250));
        let error = plan(&deep).expect_err("is too deep").to_string();
        assert!(error.contains("nested"), "{error}");
        assert!(sentence(&" ".repeat(BYTES_MAX + 1)).contains("more than the limit"));
        let bomb = "<!DOCTYPE x [<!ENTITY a 'b'>]><jmeterTestPlan>&a;</jmeterTestPlan>";
        assert!(sentence(bomb).contains("not XML"));
    }
}
